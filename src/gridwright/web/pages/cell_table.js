// A table of cells that are plain inputs. Only those near the visible part exist, so that systems of
// many classes and machines stay quick. The server keeps the texts; it hears of every change.
const WIDTH = 88, HEIGHT = 32, BEYOND = 3, ALL = 500, HEADS = 3, LEFT = 2, PAUSE = 250;

export default {
  template: `
    <div class="gw-cells" ref="box" @scroll="look" @copy="copy">
      <table class="gw" :aria-rowcount="texts.length" :aria-colcount="columns.length + 2">
        <template v-for="r in rows" :key="r">
          <tr v-if="r === first" :style="{height: '32px'}">
            <th scope="col">Class</th><th scope="col">Arrivals</th>
            <th v-if="from > 0" :style="space"></th>
            <th v-for="c in shown" :key="c" scope="col" :title="loadOf(c).title">
              rate on {{ texts[0][c] || c - 1 }}<br v-if="loadOf(c).text" />
              <span v-if="loadOf(c).text" :class="loadOf(c).look">{{ loadOf(c).text }}</span>
            </th>
          </tr>
          <tr v-if="r === first && skippedRows" :style="{height: skippedRows * 32 + 'px'}"></tr>
          <tr :style="{height: '32px'}">
            <th v-if="r < 3" scope="row" colspan="2">{{ titles[r] }}</th>
            <td v-if="r >= 3" v-for="c in [0, 1]" :key="'left' + c" :class="{'gw-stay': c === 0}">
              <input v-bind="about(r, c)" @input="typed(r, c, $event)" @change="settle(r, c)"
                @keydown="move(r, c, $event)" @paste="paste(r, c, $event)"
                @focus="arrive(r, c)" @mousedown="extend(r, c, $event)" />
            </td>
            <td v-if="from > 0" :style="space"></td>
            <td v-for="c in shown" :key="c">
              <input v-bind="about(r, c)" @input="typed(r, c, $event)" @change="settle(r, c)"
                @keydown="move(r, c, $event)" @paste="paste(r, c, $event)"
                @focus="arrive(r, c)" @mousedown="extend(r, c, $event)" />
            </td>
            <td v-if="r === 0 && after > 0" :style="{minWidth: after * 88 + 'px'}"></td>
          </tr>
        </template>
        <tr v-if="skippedAfter" :style="{height: skippedAfter * 32 + 'px'}"></tr>
      </table>
    </div>`,
  props: { cells: Array },
  data() {
    return {
      texts: this.cells.map((row) => [...row]),
      wrong: {},
      titles: ["Machine or group", "How many", "Availability"],
      left: 0, top: 0, wide: 600, high: 400,
      waiting: null, timer: 0,
      at: null, corner: null,  // the cell with the focus, and the other corner of a block
      layer: { name: "", shades: [], machines: [], classes: [] },
    };
  },
  computed: {
    columns() { return this.texts[0].slice(LEFT); },
    whole() { return this.texts.length * this.texts[0].length <= ALL; },
    from() { return this.whole ? 0 : Math.max(0, Math.floor(this.left / WIDTH) - BEYOND); },
    shown() {
      const last = this.whole ? this.columns.length : Math.min(
        this.columns.length, Math.ceil((this.left + this.wide) / WIDTH) + BEYOND);
      return Array.from({ length: Math.max(last - this.from, 0) }, (_, k) => this.from + k + LEFT);
    },
    after() { return this.columns.length - this.from - this.shown.length; },
    space() { return { minWidth: this.from * WIDTH + "px" }; },
    first() {
      return this.whole ? HEADS : HEADS + Math.max(0, Math.floor(this.top / HEIGHT) - BEYOND);
    },
    rows() {
      const count = this.texts.length;
      const last = this.whole ? count : Math.min(
        count, HEADS + Math.ceil((this.top + this.high) / HEIGHT) + BEYOND);
      const body = Array.from({ length: Math.max(last - this.first, 0) }, (_, k) => this.first + k);
      return [0, 1, 2, ...body];
    },
    skippedRows() { return this.first - HEADS; },
    skippedAfter() { return this.texts.length - 1 - this.rows[this.rows.length - 1]; },
    block() {  // first and last row and column of the selected cells
      if (!this.at) return null;
      const other = this.corner || this.at;
      const [low, high] = [Math.min, Math.max];
      return [low(this.at[0], other[0]), high(this.at[0], other[0]),
        low(this.at[1], other[1]), high(this.at[1], other[1])];
    },
  },
  watch: {
    cells(now) {
      clearTimeout(this.timer);
      this.waiting = null;
      this.texts = now.map((row) => [...row]);
    },
  },
  mounted() {
    this.look();
    this.watcher = new ResizeObserver(this.look);
    this.watcher.observe(this.$refs.box);
  },
  unmounted() {
    clearTimeout(this.timer);
    this.watcher.disconnect();
  },
  methods: {
    look() {
      const box = this.$refs.box;
      if (!box) return;
      [this.left, this.top] = [box.scrollLeft, box.scrollTop];
      [this.wide, this.high] = [box.clientWidth || 1200, box.clientHeight || 900];
    },
    about(r, c) {
      const i = r - HEADS + 1, j = c - LEFT + 1, wrong = this.wrong[`${r},${c}`];
      const head = ["Name", "Count", "Availability"][r];
      const label = r < HEADS ? `${head} of machine ${j}` : c === 0 ? `Name of class ${i}`
        : c === 1 ? `Arrivals of class ${i}` : `Rate of class ${i} on machine ${j}`;
      const hint = r === 0 ? j : r < HEADS ? 1 : c === 0 ? i : "";
      const shade = this.shadeOf(r, c);
      return {
        value: this.texts[r][c], "aria-label": label, placeholder: hint, "data-cell": `${r},${c}`,
        "aria-invalid": wrong ? "true" : null, title: wrong || shade.title || null,
        class: [shade.look, this.isIn(r, c) ? "gw-picked" : null],
        style: wrong ? null : shade.style,
        autocomplete: "off", spellcheck: false,
      };
    },
    mark(wrong) { this.wrong = wrong; },
    // colours: shares in percent for the rates, loads in percent for machines and classes
    shade(layer) { this.layer = layer; },
    shadeOf(r, c) {
      if (r >= HEADS && c === 1) return this.load(this.layer.classes[r - HEADS]);
      const percent = r >= HEADS && c >= LEFT ? (this.layer.shades[r - HEADS] || [])[c - LEFT] : null;
      if (percent == null || !this.layer.name) return {};
      const title = `${this.layer.name} ${percent} %`;
      const strength = percent > 0 ? Math.round(8 + 0.52 * percent) : 0;
      return { title, style: { background:
        `color-mix(in srgb, var(--gw-shade) ${strength}%, transparent)` } };
    },
    loadOf(c) { return this.load(this.layer.machines[c - LEFT]); },
    load(percent) {
      if (percent == null) return {};
      const look = percent >= 100 ? "gw-over" : percent >= 90 ? "gw-tight" : "gw-fine";
      const text = `${percent >= 100 ? "▲ " : ""}${percent} %`;
      return { text, look, title: percent >= 100 ? `overload: ${percent} %` : `load ${percent} %` };
    },
    isIn(r, c) {
      const block = this.corner && this.block;
      return block && r >= block[0] && r <= block[1] && c >= block[2] && c <= block[3];
    },
    arrive(r, c) {
      this.at = [r, c];
      this.tell();
    },
    extend(r, c, event) {
      const before = this.corner;
      this.corner = event.shiftKey ? this.corner || this.at : null;
      if (before && !this.corner) this.tell();  // the focus may stay where it is
    },
    tell() { this.$emit("selected", this.block); },
    copy(event) {
      if (!this.corner) return;
      const [top, bottom, left, right] = this.block;
      const lines = this.texts.slice(top, bottom + 1).map((row) => row.slice(left, right + 1));
      event.clipboardData.setData("text/plain", lines.map((row) => row.join("\t")).join("\n"));
      event.preventDefault();
    },
    typed(r, c, event) {
      if (this.waiting && (this.waiting.row !== r || this.waiting.column !== c)) this.send();
      this.texts[r][c] = event.target.value;
      this.waiting = { row: r, column: c, text: event.target.value };
      clearTimeout(this.timer);
      this.timer = setTimeout(this.send, PAUSE);
    },
    settle(r, c) {
      // One table has one sign for decimals: the server reads a comma as a point.
      const text = this.texts[r][c];
      if ((r >= HEADS ? c > 0 : r > 0) && /^\s*[\d]*,\d+\s*$/.test(text)) {
        this.texts[r][c] = text.trim().replace(",", ".");
        this.waiting = { row: r, column: c, text: this.texts[r][c] };
      }
      this.send();
    },
    send() {
      clearTimeout(this.timer);
      if (this.waiting) this.$emit("edit", this.waiting);
      this.waiting = null;
    },
    paste(r, c, event) {
      const text = event.clipboardData.getData("text");
      if (!/[\t\n]/.test(text.trim())) return;
      event.preventDefault();
      this.send();
      const block = this.corner ? this.block : [r, r, c, c];
      this.$emit("block", { row: block[0], column: block[2], text });
    },
    undoKey(event) {
      const key = event.key.toLowerCase();
      if (!(event.ctrlKey || event.metaKey) || event.altKey || !"zy".includes(key)) return false;
      event.preventDefault();
      this.send();
      this.$emit(key === "y" || event.shiftKey ? "again" : "back");
      return true;
    },
    async move(r, c, event) {
      if (this.undoKey(event)) return;
      const input = event.target, free = input.selectionStart === input.selectionEnd;
      const arrow = event.key.startsWith("Arrow"), block = arrow && event.shiftKey;
      const begin = block || (free && input.selectionStart === 0);
      const end = block || (free && input.selectionEnd === input.value.length);
      if (event.key === "Delete" && this.corner) {
        event.preventDefault();
        this.send();
        this.$emit("clear", this.block);
        return;
      }
      const step = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], Enter: [event.shiftKey ? -1 : 1, 0],
        ArrowLeft: begin ? [0, -1] : null, ArrowRight: end ? [0, 1] : null,
      }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      const [row, column] = [r + step[0], c + step[1]];
      const least = row < HEADS ? LEFT : 0;
      if (row < 0 || row >= this.texts.length || column < least) return;
      if (column >= this.texts[0].length) return;
      event.preventDefault();
      this.send();
      this.corner = block ? this.corner || [r, c] : null;
      const cell = () => this.$refs.box.querySelector(`[data-cell="${row},${column}"]`);
      if (!cell()) {
        if (row >= HEADS) this.$refs.box.scrollTop = Math.max(0, (row - HEADS - 2) * HEIGHT);
        this.$refs.box.scrollLeft = Math.max(0, (column - LEFT - 2) * WIDTH);
        this.look();
        await this.$nextTick();
      }
      cell()?.focus();
      cell()?.select();
    },
  },
};
