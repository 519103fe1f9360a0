// A tile for each machine. The server sends only the tiles that have changed, in one message. A click
// or a key selects machines; the server hears which.
const STATES = {
  busy: ["play_arrow", "busy"], idle: ["radio_button_unchecked", "idle"],
  finishing: ["hourglass_bottom", "paused, finishing"], paused: ["pause", "paused"],
  down: ["error", "down"], killed: ["dangerous", "killed"],
  starting: ["hourglass_empty", "starting"], off: ["power_settings_new", "off"],
};
const MANY = 40, KEPT = "gridwright machines ";

export default {
  template: `
    <div>
      <div class="gw-tiles-legend">
        <span v-for="[words, state, count] in counts" :key="words" :class="'gw-is-' + state">
          <i class="q-icon material-icons" aria-hidden="true">{{ icon(state) }}</i>
          {{ count }} {{ words }}
        </span>
      </div>
      <div class="gw-tiles" :class="{'gw-many': many}" ref="box" role="listbox"
        aria-multiselectable="true" aria-label="Machines" @keydown="key">
        <div v-for="(tile, k) in shown" :key="tile[0]" role="option" :data-tile="k"
          class="gw-tile" :class="'gw-is-' + tile[1]" :title="about(tile)"
          :aria-selected="chosen.has(tile[0]) ? 'true' : 'false'" :aria-label="about(tile)"
          :tabindex="k === at ? 0 : -1" @click="click(k, $event)" @focus="at = k">
          <div class="gw-tile-head">
            <i class="q-icon material-icons" aria-hidden="true">{{ icon(tile[1]) }}</i>
            <i v-if="isAlsoPaused(tile)" class="q-icon material-icons" aria-hidden="true">pause</i>
            <b>{{ tile[0] }}</b>
            <i v-if="chosen.has(tile[0])" class="q-icon material-icons gw-tile-check"
              aria-hidden="true">check_box</i>
          </div>
          <div>{{ word(tile) }}<template v-if="tile[3] !== null">: job {{ tile[3] }}<template
            v-if="!many && tile[4]">, class {{ tile[4] }}</template></template></div>
          <div class="gw-bar"><div :style="{width: 100 * tile[7] + '%'}"></div></div>
          <template v-if="!many">
            <div>at work {{ percent(tile[7]) }}; jobs: {{ tile[5] }} finished<template
              v-if="tile[6]">, {{ tile[6] }} lost</template></div>
            <div>{{ rate(tile) }}</div>
            <div v-if="tile[11] !== null">CPU {{ percent(tile[11]) }} free for jobs, predicted
              {{ percent(tile[12]) }}</div>
          </template>
        </div>
      </div>
    </div>`,
  props: { tiles: Array },
  data() { return { shown: this.tiles, chosen: new Set(), at: 0, last: 0 }; },
  computed: {
    many() { return this.shown.length > MANY; },
    counts() {
      const found = {};
      for (const tile of this.shown) {
        const words = this.word(tile);
        found[words] = found[words] || [words, tile[1], 0];
        found[words][2] += 1;
      }
      return Object.values(found);
    },
  },
  watch: {
    tiles(now) {
      const first = !this.shown.length && now.length;
      this.shown = now;
      if (first) this.restore();
    },
  },
  mounted() { if (this.shown.length) this.restore(); },
  methods: {
    change(tiles) {
      const shown = [...this.shown];
      for (const [k, tile] of Object.entries(tiles)) shown[k] = tile;
      this.shown = shown;
    },
    icon(state) { return (STATES[state] || ["help"])[0]; },
    isAlsoPaused(tile) { return tile[13] && !["paused", "finishing"].includes(tile[1]); },
    word(tile) {
      return (STATES[tile[1]] || ["", tile[1]])[1] + (this.isAlsoPaused(tile) ? ", paused" : "");
    },
    percent(share) { return share === null ? "unknown" : `${Math.round(100 * share)} %`; },
    rate(tile) {
      const [, , , , , , , , name, learnt, stated] = tile, pace = tile[14];
      if (learnt === null || !stated) return "no rate learnt yet";
      return `class ${name}: rate ${learnt}, stated ${stated}${pace ? `, ${pace}` : ""}`;
    },
    about(tile) {
      const job = tile[3] === null ? "" : `, job ${tile[3]}${tile[4] ? " of class " + tile[4] : ""}`;
      const rest = `${tile[5]} jobs finished, ${tile[6]} lost; ${this.rate(tile)}`;
      return `machine ${tile[0]}: ${this.word(tile)} since ${tile[2]}${job}; `
        + `at work for ${this.percent(tile[7])} of the time shown; ${rest}`;
    },
    restore() {  // what was selected before the page was loaded again
      const names = JSON.parse(sessionStorage.getItem(KEPT + location.pathname) || "[]");
      const known = new Set(this.shown.map((tile) => tile[0]));
      this.chosen = new Set(names.filter((name) => known.has(name)));
      if (this.chosen.size) this.tell();
    },
    tell() {
      this.chosen = new Set(this.chosen);
      sessionStorage.setItem(KEPT + location.pathname, JSON.stringify([...this.chosen]));
      this.$emit("choose", this.shown.map((tile) => tile[0]).filter((name) => this.chosen.has(name)));
    },
    toggle(k) {
      const name = this.shown[k][0];
      if (!this.chosen.delete(name)) this.chosen.add(name);
    },
    click(k, event) {
      if (event.shiftKey) this.reach(k);
      else this.toggle(k);
      this.at = this.last = k;
      this.tell();
    },
    reach(k) {
      const [from, to] = [Math.min(this.last, k), Math.max(this.last, k)];
      for (const tile of this.shown.slice(from, to + 1)) this.chosen.add(tile[0]);
    },
    choose(states) {
      this.chosen = new Set(
        this.shown.filter((tile) => !states || states.includes(tile[1])).map((tile) => tile[0]));
      this.tell();
    },
    key(event) {
      const count = this.shown.length;
      const tops = [...this.$refs.box.children].map((tile) => tile.offsetTop);
      const wide = Math.max(tops.findIndex((top) => top > tops[0]), 0) || count;
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide };
      if (event.key in steps) {
        const to = this.at + steps[event.key];
        if (to < 0 || to >= count) return;
        if (event.shiftKey) { this.reach(to); this.tell(); }
        this.at = to;
        this.$refs.box.children[to].focus();
      } else if (event.key === " " || event.key === "Enter") {
        this.toggle(this.at);
        this.last = this.at;
        this.tell();
      } else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.choose(null);
      else if (event.key === "Escape") this.choose([]);
      else return;
      event.preventDefault();
    },
  },
};
