// Sentences, the latest first. The server sends only what has changed; lines keep their places while
// somebody reads further down.
export default {
  template: `
    <div class="gw-events" role="log" aria-live="off" aria-label="Events" tabindex="0">
      <ul>
        <li v-for="line in shown" :key="line.id">{{ line.words }}</li>
        <li v-if="!shown.length">Nothing of this kind has happened yet.</li>
      </ul>
    </div>`,
  props: { lines: Array },
  data() { return { shown: [], last: 0 }; },
  watch: { lines: { immediate: true, handler(now) { this.shown = this.numbered(now); } } },
  methods: {
    numbered(lines) { return lines.map((words) => ({ id: ++this.last, words })); },
    change(lines, gone) {
      const dropped = new Set(gone);
      const kept = this.shown.filter((line, k) => !dropped.has(k));
      this.shown = [...this.numbered(lines), ...kept];
    },
  },
};
