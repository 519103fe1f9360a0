// Films of a system under one policy or several: tasks flow from the left through queues and machines.
// A film says when each task changes its place, so the picture is a function of the time alone, and
// can be played at any speed and from any moment. Class k has a colour and a pattern.
const WAITS = -1, GONE = -2, TOKEN = 12, STEP = 14, DEEP = 4, ROW = 88, LONG = 60, FLIGHT = 0.35;
const FINISHED = "finished", NUMBER_HIGH = 110;
const STEPS = 500;  // of the slider for the time; the last one is the end of the film

export default {
  template: `
    <section :class="['gw-flow', { 'gw-flow-busy': busy }]" aria-label="The system in motion"
      :aria-busy="busy">
      <div class="gw-flow-controls">
        <button type="button" @click="toggle" :disabled="empty">{{ playing ? "Pause" : "Play" }}</button>
        <button type="button" @click="restart" :disabled="empty">From the start</button>
        <label>Speed <input type="range" min="-4" max="4" step="0.5" v-model.number="exponent"
          :disabled="empty" :aria-valuetext="pace" /> <span>{{ pace }}</span></label>
        <label>Time <input type="range" min="0" :max="STEPS" step="1"
          :value="(time / scene.end) * STEPS" @input="drag" :disabled="empty"
          :aria-valuetext="clock" />
          <span>{{ clock }}</span></label>
      </div>
      <ul class="gw-flow-legend" aria-label="Classes">
        <li v-for="(name, k) in scene.classes" :key="k"><canvas :ref="(c) => legend(c, k)"
          width="16" height="16" aria-hidden="true"></canvas> class {{ name }}</li>
      </ul>
      <div class="gw-flow-films">
        <figure v-for="(film, f) in scene.films" :key="f">
          <figcaption>{{ film.policy }} ({{ film.kind }})</figcaption>
          <p class="gw-flow-policy">{{ film.words }}</p>
          <canvas :ref="(c) => canvases[f] = c" :height="high" role="img"
            :aria-label="words[f]"></canvas>
          <p class="gw-flow-words" data-words>{{ words[f] }}</p>
        </figure>
      </div>
      <figure v-if="scene.films.length">
        <figcaption>Tasks in the system<template v-for="(film, f) in scene.films" :key="f">,
          {{ film.policy }} {{ f ? "dashed" : "solid" }}</template></figcaption>
        <canvas ref="line" height="110" role="img" :aria-label="lineWords"></canvas>
      </figure>
    </section>`,
  props: { scene: Object, colours: Array },
  data() {
    return { playing: false, time: 0, exponent: 0, words: [], lineWords: "", wanted: 1 };
  },
  computed: {
    high() { return Math.max(this.scene.machines.length, 2) * ROW; },
    speed() { return (this.scene.end / LONG) * 2 ** this.exponent; },  // time units a second
    busy() { return this.wanted > this.scene.number; },  // newer films are being made
    empty() { return !this.scene.films.length; },
    pace() { return this.empty ? "–" : `${this.speed.toPrecision(2)} time units per second`; },
    clock() { return this.empty ? "–" : `${this.time.toFixed(2)} of ${this.scene.end.toFixed(1)} time units`; },
  },
  watch: {
    scene() { this.restart(); },
    time() { if (!this.playing) this.paint(); },
    playing() { if (!this.playing) this.paint(); },  // the slider sets the time just before it stops
  },
  created() { this.canvases = []; this.STEPS = STEPS; },
  mounted() {
    this.watcher = new ResizeObserver(() => this.paint());
    this.watcher.observe(this.$el);
    this.theme = new MutationObserver(() => { this.$forceUpdate(); this.paint(); });
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.restart();
  },
  unmounted() {
    cancelAnimationFrame(this.frame);
    this.watcher.disconnect();
    this.theme.disconnect();
  },
  methods: {
    wait(wanted) {  // it may come after the films themselves
      this.wanted = wanted;
      if (this.busy) this.playing = false;
    },
    restart() {
      this.time = 0;
      this.playing = this.scene.films.length > 0
        && !matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.$nextTick(() => { this.paint(); this.run(); });
    },
    goTo(time) {
      this.playing = false;
      this.$nextTick(() => {
        this.playing = false;
        this.time = Math.min(time, this.scene.end);
      });
    },
    drag(event) {
      const step = +event.target.value;
      this.playing = false;
      this.time = step >= STEPS ? this.scene.end : (step / STEPS) * this.scene.end;
    },
    toggle() {
      if (this.time >= this.scene.end) this.time = 0;
      this.playing = !this.playing;
      this.run();
    },
    run() {
      cancelAnimationFrame(this.frame);
      let before = performance.now();
      const tick = (now) => {
        if (!this.playing) return;
        const passed = Math.max(now - before, 0);  // a frame may have begun before this call
        this.time = Math.min(this.time + (passed / 1000) * this.speed, this.scene.end);
        before = now;
        this.paint();
        if (this.time >= this.scene.end) this.playing = false;
        else this.frame = requestAnimationFrame(tick);
      };
      this.frame = requestAnimationFrame(tick);
    },
    paint() {
      const style = getComputedStyle(document.body);
      this.ink = style.getPropertyValue("--gw-text") || "#333";
      this.paper = style.getPropertyValue("--gw-card") || "#fff";
      const tell = !this.playing || performance.now() - (this.told || 0) > 500;
      if (tell) this.told = performance.now();
      this.scene.films.forEach((film, f) => this.paintFilm(film, f, tell));
      this.paintNumbers(tell);
    },
    context(canvas, high) {
      const wide = canvas.clientWidth, dots = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(wide * dots) || canvas.height !== Math.round(high * dots)) {
        [canvas.width, canvas.height] = [Math.round(wide * dots), Math.round(high * dots)];
      }
      const pen = canvas.getContext("2d");
      pen.setTransform(dots, 0, 0, dots, 0, 0);
      pen.clearRect(0, 0, wide, high);
      pen.font = "12px sans-serif";
      pen.textBaseline = "middle";
      return [pen, wide];
    },
    paintFilm(film, f, tell) {
      const canvas = this.canvases[f];
      if (!canvas || !canvas.clientWidth) return;
      const [pen, wide] = this.context(canvas, this.high);
      const place = this.places(film, wide);
      this.paintStations(pen, film, place);
      const count = this.paintTasks(pen, film, place, wide);
      this.paintCounts(pen, place, count);
      if (tell) this.words[f] = this.describe(film, count);
    },
    places(film, wide) {
      // Where things are: sources at the left, a central queue if there is one, then the stations.
      const share = (k, n) => (this.high * (k + 0.5)) / n;
      const station = wide - 96, start = 56;
      const middle = film.central ? start + (station - start) * 0.62 : start;
      return {
        source: (k) => [20, share(k, this.scene.classes.length)],
        station: (j) => [station, share(j, this.scene.machines.length)],
        queue: (j) => ({ front: station - 26, back: middle + 8, y: share(j, this.scene.machines.length) }),
        central: (k) => ({ front: middle - 18, back: start, y: share(k, this.scene.classes.length) }),
      };
    },
    slot(queue, n) {
      // The n-th place of a stack: columns of DEEP tasks, the first at the front; null if it is full.
      const x = queue.front - Math.floor(n / DEEP) * STEP;
      return x < queue.back ? null : [x, queue.y + ((n % DEEP) - (DEEP - 1) / 2) * STEP];
    },
    paintStations(pen, film, place) {
      this.scene.classes.forEach((name, k) => this.token(pen, ...place.source(k), k, TOKEN + 4));
      pen.fillStyle = this.ink;
      pen.textAlign = "left";
      pen.fillText("arrivals", 2, 8);
      pen.strokeStyle = this.ink;
      this.scene.machines.forEach((name, j) => {
        const [x, y] = place.station(j);
        const away = film.down.some(([m, from, to]) => m === j && from <= this.time && this.time < to);
        pen.lineWidth = away ? 3 : 1.5;
        pen.setLineDash(away ? [4, 4] : []);
        pen.strokeRect(x - 16, y - 22, 72, 44);
        pen.setLineDash([]);
        pen.fillStyle = this.ink;
        pen.textAlign = "left";
        pen.fillText(`machine ${name}${away ? " failed" : ""}`, x - 16, y - 31, 100);
      });
      pen.lineWidth = 1;
    },
    paintTasks(pen, film, place, wide) {
      const queued = {}, busy = {}, later = [], t = this.time;
      const flight = this.playing ? FLIGHT * this.speed : 1e-9;  // nothing is on its way in a still picture
      const count = { queued, busy, system: 0, finished: 0, response: 0, waiting: {} };
      for (const task of film.tasks) {
        if (task[1] > t) break;
        let i = 1;
        while (i + 2 < task.length && task[i + 2] <= t) i += 2;
        const since = task[i], spot = task[i + 1], part = Math.min((t - since) / flight, 1);
        if (spot === GONE) {
          count[FINISHED] += 1;
          count.response += since - task[1];
          const from = place.station((task[i - 1] - 1) / 2);
          if (part < 1) later.push([task[0], from, [wide + 10, from[1]], part]);
          continue;
        }
        count.system += 1;
        const source = place.source(task[0]);
        if (spot === WAITS || spot % 2 === 0) {
          const key = spot === WAITS ? `c${task[0]}` : `m${spot / 2}`, n = queued[key] || 0;
          queued[key] = n + 1;
          const queue = spot === WAITS ? place.central(task[0]) : place.queue(spot / 2);
          const to = this.slot(queue, n);
          if (to && part < 1 && i === 1) later.push([task[0], source, to, part]);
          else if (to) this.token(pen, to[0], to[1], task[0], TOKEN);
        } else {
          const j = (spot - 1) / 2, to = place.station(j), end = task[i + 2] || this.scene.end;
          busy[j] = { k: task[0], done: (t - since) / Math.max(end - since, 1e-9) };
          const before = i > 1 ? task[i - 1] : null;
          const from = before === WAITS ? this.slot(place.central(task[0]), 0)
            : before !== null ? this.slot(place.queue(j), 0) : source;
          later.push([task[0], from || source, to, part]);
          if (part >= 1) {
            pen.fillStyle = this.ink;
            pen.fillRect(to[0] + 10, to[1] + 6, 40 * busy[j].done, 5);
          }
        }
      }
      for (const [k, from, to, part] of later) {
        this.token(pen, from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part, k,
          TOKEN + 2);
      }
      return count;
    },
    paintCounts(pen, place, count) {
      pen.fillStyle = this.ink;
      pen.textAlign = "right";
      for (const [key, n] of Object.entries(count.queued)) {
        const queue = key[0] === "m" ? place.queue(+key.slice(1)) : place.central(+key.slice(1));
        pen.fillText(`${n} waiting`, queue.front + 6, queue.y - 33);
      }
    },
    token(pen, x, y, k, size) {
      const half = size / 2, pattern = k % 4;
      pen.save();
      pen.fillStyle = this.colours[k % this.colours.length];
      pen.strokeStyle = this.ink;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.roundRect(x - half, y - half, size, size, 3);
      pen.fill();
      pen.stroke();
      pen.strokeStyle = pen.fillStyle = this.paper;
      pen.lineWidth = 2;
      pen.beginPath();
      if (pattern === 1) { pen.moveTo(x - half + 2, y); pen.lineTo(x + half - 2, y); }
      if (pattern === 2) { pen.arc(x, y, 2.2, 0, 7); pen.fill(); }
      if (pattern === 3) { pen.moveTo(x, y - half + 2); pen.lineTo(x, y + half - 2); }
      if (pattern !== 2) pen.stroke();
      pen.restore();
    },
    legend(canvas, k) {
      if (!canvas) return;
      const style = getComputedStyle(document.body);
      this.ink = style.getPropertyValue("--gw-text") || "#333";
      this.paper = style.getPropertyValue("--gw-card") || "#fff";
      const pen = canvas.getContext("2d");
      pen.clearRect(0, 0, 16, 16);
      this.token(pen, 8, 8, k, 13);
    },
    describe(film, count) {
      const machines = this.scene.machines.map((name, j) => {
        const away = film.down.some(([m, from, to]) => m === j && from <= this.time && this.time < to);
        const runs = count.busy[j] ? `runs class ${this.scene.classes[count.busy[j].k]}` : "is idle";
        return `Machine ${name} ${away ? "has failed" : runs}, ${count.queued[`m${j}`] || 0} wait.`;
      });
      if (film.central) {
        const waiting = this.scene.classes.map((name, k) =>
          `${count.queued[`c${k}`] || 0} of class ${name}`);
        machines.unshift(`In the central queue: ${waiting.join(", ")}.`);
      }
      const mean = count[FINISHED] ? (count.response / count[FINISHED]).toFixed(2) : "–";
      return `${count.system} ${count.system === 1 ? "task" : "tasks"} in the system, ${count[FINISHED]} finished, `
        + `mean response so far ${mean}. ${machines.join(" ")}`;
    },
    paintNumbers(tell) {
      const canvas = this.$refs.line;
      if (!canvas || !canvas.clientWidth) return;
      const [pen, wide] = this.context(canvas, NUMBER_HIGH);
      const left = 40, low = NUMBER_HIGH - 8, films = this.scene.films;
      const most = Math.max(5, ...films.flatMap((film) => film.number.map((each) => each[1])));
      const at = (t, n) => [left + (t / this.scene.end) * (wide - left - 8), low - (n / most) * (low - 8)];
      pen.strokeStyle = pen.fillStyle = this.ink;
      pen.textAlign = "right";
      pen.fillText(String(most), left - 6, 10);
      pen.fillText("0", left - 6, low - 2);
      pen.globalAlpha = 0.4;
      pen.beginPath();
      pen.moveTo(...at(0, most)); pen.lineTo(...at(0, 0)); pen.lineTo(...at(this.scene.end, 0));
      pen.stroke();
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      films.forEach((film, f) => {
        pen.setLineDash(f ? [6, 4] : []);
        pen.beginPath();
        film.number.filter(([t]) => t <= this.time).forEach(([t, n], k) =>
          k ? pen.lineTo(...at(t, n)) : pen.moveTo(...at(t, n)));
        pen.stroke();
      });
      pen.setLineDash([]);
      if (tell) {
        const now = (film) => film.number.filter(([t]) => t <= this.time).pop()?.[1] ?? 0;
        this.lineWords = films.map((film) => `${film.policy}: ${now(film)} tasks`).join("; ");
      }
    },
  },
};
