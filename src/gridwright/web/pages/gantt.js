// When which machine ran which class, was away, or was held by an operator: drawn on a canvas, because
// there may be thousands of stretches.
const LEFT = 74, TOP = 4, FOOT = 22, AWAY = -1, HELD = -2;

export default {
  template: `
    <div>
      <div class="gw-legend" aria-hidden="true">
        <span v-for="(name, k) in names" :key="name">
          <span class="gw-key" :style="{background: colour(k)}"></span> class {{ name }}</span>
        <span><span class="gw-key gw-key-lost"></span> did not finish</span>
        <span><span class="gw-key gw-key-away"></span> away</span>
        <span><span class="gw-key gw-key-held"></span> held by an operator</span>
      </div>
      <div ref="box" class="gw-gantt">
        <canvas ref="canvas" role="img" :aria-label="about" @mousemove="point"></canvas>
      </div>
    </div>`,
  props: { found: Object, colours: Array, label: String },
  computed: {
    names() { return this.found.classes.slice(0, 12); },
    high() {
      const count = this.found.machines.length;
      return count <= 16 ? 20 : count <= 60 ? 12 : 6;
    },
    about() {
      const { machines, since, now, spans } = this.found;
      const away = new Set(spans.filter((each) => each[3] === AWAY).map((each) => each[0])).size;
      return `${this.label}: ${machines.length} machines from ${since.toFixed(1)} to `
        + `${now.toFixed(1)} time units; ${away} of them were away for a while`;
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
      const wide = Math.max(this.$refs.box.clientWidth - LEFT - 12, 50);
      const { since, now } = this.found;
      return { wide, at: (time) => LEFT + wide * (time - since) / Math.max(now - since, 1e-9) };
    },
    draw() {
      const canvas = this.$refs.canvas;
      if (!canvas || !this.$refs.box.clientWidth) return;
      const { machines, since, now, spans } = this.found, { wide, at } = this.scale();
      const size = [LEFT + wide + 12, TOP + FOOT + this.high * machines.length];
      const ratio = window.devicePixelRatio || 1;
      [canvas.width, canvas.height] = size.map((each) => Math.round(each * ratio));
      [canvas.style.width, canvas.style.height] = size.map((each) => `${each}px`);
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const text = getComputedStyle(document.body).getPropertyValue("--gw-text") || "#333";
      pen.font = "11px sans-serif";
      pen.textBaseline = "middle";
      const order = [...spans].sort((a, b) => b[3] - a[3]);  // jobs first, then what stopped them
      for (const [machine, start, end, kind, lost] of order) {
        const x = at(start), y = TOP + machine * this.high, width = Math.max(at(end) - x, 1);
        pen.fillStyle = kind === AWAY ? "#b3261e" : kind === HELD ? this.stripes(pen) : this.colour(kind);
        if (kind === HELD) pen.fillRect(x, y + this.high - 5, width, 4);
        else pen.fillRect(x, y + 1, width, this.high - 2);
        if (lost) {
          pen.fillStyle = this.stripes(pen);
          pen.fillRect(x, y + 1, width, this.high - 2);
        }
      }
      pen.fillStyle = text;
      const every = Math.ceil(12 / this.high);
      machines.forEach((name, k) => {
        const y = TOP + (k + 0.5) * this.high;
        if (k % every === 0) pen.fillText(String(name).slice(0, 11), 2, y, LEFT - 6);
      });
      pen.textBaseline = "bottom";
      const step = this.step(now - since, wide);
      for (let time = Math.ceil(since / step) * step; time <= now; time += step) {
        pen.fillRect(at(time), TOP, 0.5, this.high * machines.length);
        pen.fillText(String(+time.toPrecision(6)), at(time) - 4, size[1] - 4);
      }
    },
    step(length, wide) {
      const raw = length * 80 / wide, ten = 10 ** Math.floor(Math.log10(raw || 1));
      return [1, 2, 5, 10].map((each) => each * ten).find((each) => each >= raw) || 1;
    },
    stripes(pen) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 6;
      const own = tile.getContext("2d");
      own.strokeStyle = "#111";
      own.lineWidth = 2;
      own.beginPath();
      for (const k of [-6, 0, 6]) { own.moveTo(k, 6); own.lineTo(k + 6, 0); }
      own.stroke();
      return pen.createPattern(tile, "repeat");
    },
    point(event) {
      const { machines, classes, spans } = this.found, { at } = this.scale();
      const row = Math.floor((event.offsetY - TOP) / this.high);
      const hit = spans.filter(([machine, start, end]) => machine === row
        && event.offsetX >= at(start) - 1 && event.offsetX <= at(end) + 1);
      const words = hit.map(([, start, end, kind, lost]) => {
        const what = kind === AWAY ? "away" : kind === HELD ? "held by an operator"
          : `class ${classes[kind]}${lost ? ", did not finish" : ""}`;
        return `${what}, ${start.toFixed(2)} to ${end.toFixed(2)}`;
      });
      const name = machines[row] === undefined ? "" : `machine ${machines[row]}`;
      this.$refs.canvas.title = [name, ...words].join("\n");
    },
  },
};
