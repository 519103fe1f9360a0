// When which machine ran which class, had failed, or was in the hands of an operator: drawn on a canvas,
// because there may be thousands of stretches.
const TOP = 4, FOOT = 38, RIGHT = 12, FONT = "11px sans-serif", WIDEST = 160;
const FAILED = -1, TAKEN = -2, PAUSED = -3, SLOWED = -4, LOST = "lost";
const LOOKS = {  // ground, ink, and the lines of a tile of 6 × 6 pixels
  [LOST]: [null, "#111", [[-6, 6, 0, 0], [0, 6, 6, 0], [6, 6, 12, 0]]],
  [FAILED]: ["#b3261e", "#fff", [[0, 0, 6, 6], [0, 6, 6, 0]]],
  [TAKEN]: ["#6d3fc0", "#fff", [[0, 3, 6, 3]]],
  [PAUSED]: ["#ddd", "#111", [[-6, 6, 0, 0], [0, 6, 6, 0], [6, 6, 12, 0]]],
  [SLOWED]: ["#ddd", "#111", [[3, 0, 3, 6]]],
};
const WORDS = {
  [LOST]: "did not finish", [FAILED]: "failed", [TAKEN]: "taken away by an operator",
  [PAUSED]: "paused by an operator", [SLOWED]: "slowed by an operator",
};

export default {
  template: `
    <div>
      <div class="gw-legend" aria-hidden="true">
        <span v-for="[kind, words] in keys" :key="words">
          <canvas class="gw-key" width="28" height="24" :ref="(each) => show(each, kind)"></canvas>
          {{ words }}</span>
      </div>
      <div ref="box" class="gw-gantt">
        <canvas ref="canvas" role="img" :aria-label="about" @mousemove="point"></canvas>
      </div>
    </div>`,
  props: { found: Object, colours: Array, label: String },
  computed: {
    keys() {
      const own = this.found.classes.slice(0, 12).map((name, k) => [k, `class ${name}`]);
      return [...own, ...[LOST, FAILED, TAKEN, PAUSED, SLOWED].map((kind) => [kind, WORDS[kind]])];
    },
    high() {
      const count = this.found.machines.length;
      return count <= 16 ? 20 : count <= 60 ? 12 : 6;
    },
    about() {
      const { machines, since, now, spans } = this.found;
      const number = (kind) => new Set(
        spans.filter((each) => each[3] === kind).map((each) => each[0])).size;
      return `${this.label}: ${machines.length} machines from ${since.toFixed(1)} to `
        + `${now.toFixed(1)} time units; ${number(FAILED)} of them failed, operators took `
        + `${number(TAKEN)} away, paused ${number(PAUSED)} and slowed ${number(SLOWED)}`;
    },
  },
  watch: { found() { this.draw(); } },
  mounted() {
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.$refs.box);
    this.looks = new MutationObserver(() => this.draw());
    this.looks.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  unmounted() {
    this.watcher.disconnect();
    this.looks.disconnect();
  },
  methods: {
    colour(kind) { return this.colours[kind % this.colours.length]; },
    scale() {
      const wide = Math.max(this.$refs.box.clientWidth - this.left() - RIGHT, 50);
      const { since, now } = this.found, left = this.left();
      return { left, wide, at: (time) => left + wide * (time - since) / Math.max(now - since, 1e-9) };
    },
    left() {  // room for the names of machines
      const pen = this.$refs.canvas.getContext("2d");
      pen.save();
      pen.font = FONT;
      const widths = this.found.machines.map((name) => pen.measureText(String(name)).width);
      pen.restore();
      return Math.ceil(Math.min(Math.max(...widths, 24), WIDEST)) + 10;
    },
    short(pen, name) {  // what fits of a name
      let text = String(name);
      if (pen.measureText(text).width <= WIDEST) return text;
      while (text && pen.measureText(`${text}…`).width > WIDEST) text = text.slice(0, -1);
      return `${text}…`;
    },
    fill(pen, kind, lost, x, y, width, height) {
      if (kind >= 0) {
        pen.fillStyle = this.colour(kind);
        pen.fillRect(x, y, width, height);
      }
      if (kind >= 0 && !lost) return;
      pen.fillStyle = this.pattern(pen, lost ? LOST : kind);
      pen.fillRect(x, y, width, height);
    },
    pattern(pen, kind) {
      const [ground, ink, lines] = LOOKS[kind], tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const own = tile.getContext("2d");
      if (ground) {
        own.fillStyle = ground;
        own.fillRect(0, 0, 6, 6);
      }
      own.strokeStyle = ink;
      own.lineWidth = kind === FAILED ? 0.8 : 1.6;
      for (const [x, y, toX, toY] of lines) {
        own.beginPath();
        own.moveTo(x, y);
        own.lineTo(toX, toY);
        own.stroke();
      }
      return pen.createPattern(tile, "repeat");
    },
    show(canvas, kind) {  // a key of the legend
      if (!canvas) return;
      const pen = canvas.getContext("2d");
      pen.setTransform(2, 0, 0, 2, 0, 0);
      pen.clearRect(0, 0, 14, 12);
      this.fill(pen, kind === LOST ? 4 : kind, kind === LOST, 0, 0, 14, 12);
    },
    draw() {
      const canvas = this.$refs.canvas;
      if (!canvas || !this.$refs.box.clientWidth) return;
      const { machines, since, now, spans } = this.found, { left, wide, at } = this.scale();
      const size = [left + wide + RIGHT, TOP + FOOT + this.high * machines.length];
      const ratio = window.devicePixelRatio || 1;
      [canvas.width, canvas.height] = size.map((each) => Math.round(each * ratio));
      [canvas.style.width, canvas.style.height] = size.map((each) => `${each}px`);
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const text = getComputedStyle(document.body).getPropertyValue("--gw-text") || "#333";
      pen.font = FONT;
      pen.textBaseline = "middle";
      const isHeld = (kind) => kind === PAUSED || kind === SLOWED;
      const order = [...spans].sort((a, b) => isHeld(a[3]) - isHeld(b[3]) || b[3] - a[3]);
      for (const [machine, start, end, kind, lost] of order) {
        const x = at(start), y = TOP + machine * this.high, width = Math.max(at(end) - x, 1);
        const height = this.high < 10 ? 2 : 5;  // of a stripe below what the machine runs
        if (isHeld(kind)) this.fill(pen, kind, false, x, y + this.high - height, width, height);
        else this.fill(pen, kind, lost, x, y + 1, width, this.high - 2);
      }
      pen.fillStyle = text;
      const every = Math.ceil(12 / this.high);
      machines.forEach((name, k) => {
        if (k % every === 0) pen.fillText(this.short(pen, name), 2, TOP + (k + 0.5) * this.high);
      });
      pen.textAlign = "center";
      pen.textBaseline = "alphabetic";
      const step = this.step(now - since, wide), below = TOP + this.high * machines.length;
      for (let time = Math.ceil(since / step) * step; time <= now; time += step) {
        const words = String(+time.toPrecision(6)), half = pen.measureText(words).width / 2;
        pen.fillRect(at(time), TOP, 0.5, this.high * machines.length + 3);
        pen.fillText(words, Math.min(at(time), size[0] - half - 1), below + 14);
      }
      pen.fillText("time units since the run began", left + wide / 2, below + 30);
    },
    step(length, wide) {
      const raw = length * 80 / wide, ten = 10 ** Math.floor(Math.log10(raw || 1));
      return [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= raw) || 1;
    },
    point(event) {
      const { machines, classes, spans } = this.found, { at } = this.scale();
      const row = Math.floor((event.offsetY - TOP) / this.high);
      const hit = spans.filter(([machine, start, end]) => machine === row
        && event.offsetX >= at(start) - 1 && event.offsetX <= at(end) + 1);
      const words = hit.map(([, start, end, kind, lost]) => {
        const what = WORDS[kind] || `class ${classes[kind]}${lost ? `, ${WORDS[LOST]}` : ""}`;
        return `${what}, ${start.toFixed(2)} to ${end.toFixed(2)}`;
      });
      const name = machines[row] === undefined ? "" : `machine ${machines[row]}`;
      this.$refs.canvas.title = [name, ...words].join("\n");
    },
  },
};
