// What `graphrag-pipeline up` is doing with the index, in a strip on every page; nothing without `up`.

import { get } from "../core/api.js";
import { visible } from "../core/text.js";
import { Component, html } from "../core/ui.js";

const EVERY_MS = 1500;

export class LiveStrip extends Component {
  state = { live: null };

  componentDidMount() { this.look(); }
  componentWillUnmount() { this.isGone = true; clearTimeout(this.timer); }

  look = async () => {
    const live = await get("/live", {}, { isFresh: true }).catch(() => null);
    if (this.isGone) return;
    this.setState({ live });
    if (live?.state !== "") this.timer = setTimeout(this.look, EVERY_MS);
  };

  render() {
    const { live } = this.state;
    if (!live?.state) return null;
    return html`<p class=${`live ${live.state}`} role="status">${visible(live.message)}
      ${live.n_total > 0 && html`<progress aria-label="Parts of the index run" max=${live.n_total} value=${live.n_done} />`}</p>`;
  }
}
