// A slider of the browser's own, which the keyboard moves and screen readers know. It shows its value
// at once and tells the server when it has rested for a moment. An answer to an earlier value is ignored.
const PAUSE = 250;

export default {
  template: `
    <label class="gw-slider">
      <span>{{ title }} <b>{{ text }}</b></span>
      <input type="range" :min="least" :max="most" :step="step" :value="here" :aria-label="label"
        :aria-valuetext="text" @input="move" @change="release" @blur="leave" />
    </label>`,
  props: { title: String, label: String, least: Number, most: Number, step: Number, value: Number,
    percent: Boolean },
  data() {
    return { here: this.value, timer: 0, sent: 0 };
  },
  computed: {
    text() {
      return this.percent ? `${+(100 * this.here).toFixed(1)} %` : `${+this.here.toPrecision(4)}`;
    },
  },
  unmounted() { clearTimeout(this.timer); },
  methods: {
    move(event) {
      this.here = +event.target.value;
      clearTimeout(this.timer);
      this.timer = setTimeout(this.tell, PAUSE);
    },
    release(event) {
      // A released pointer tells at once; keys fire this with every step, so they wait.
      if (!event.target.matches(":focus-visible")) this.leave();
    },
    leave() {
      if (this.timer) this.tell();
    },
    tell() {
      clearTimeout(this.timer);
      this.timer = 0;
      this.sent += 1;
      this.$emit("moved", [this.here, this.sent]);
    },
    show(value, answered) {
      if (!this.timer && answered >= this.sent) this.here = value;
    },
  },
};
