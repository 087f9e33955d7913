// Thumbs and a correction below an answer; the server keeps them outside the index.

import { post } from "../core/api.js";
import { Component, html, Icon } from "../core/ui.js";

const UP = "M7 11v9H4v-9zM7 11l4-8c2 0 3 1 2.5 3L13 9h6a2 2 0 0 1 2 2l-2 7a2 2 0 0 1-2 2H7";
const DOWN = "M7 13V4H4v9zM7 13l4 8c2 0 3-1 2.5-3L13 15h6a2 2 0 0 0 2-2l-2-7a2 2 0 0 0-2-2H7";

export class Feedback extends Component {
  state = { rating: "", said: "" };

  async give(rating, correction = "") {
    const { q, answer, result } = this.props.turn;
    const documents = [...new Set(result.citations.map((one) => one.document_path))];
    this.setState({ rating });
    try {
      await post("/feedback", { rating, correction, question: q, answer, documents, snapshot: result.snapshot });
      this.setState({ said: "Thank you", isOpen: rating === "down" && !correction });
    } catch (error) { this.setState({ said: error.message, rating: "" }); }
  }

  correct = (event) => {
    event.preventDefault();
    this.give("down", new FormData(event.target).get("correction").trim());
  };

  render(_, { rating, said, isOpen }) {
    const thumb = (name, path, text) => html`<button aria-label=${text} title=${text} aria-pressed=${rating === name}
      disabled=${Boolean(rating)} onClick=${() => this.give(name)}><${Icon} path=${path} /></button>`;
    return html`<span class="feedback">${thumb("up", UP, "Good answer")}${thumb("down", DOWN, "Bad answer")}
      <span class="count" role="status">${said}</span></span>
      ${isOpen && html`<form class="search correction" onSubmit=${this.correct}>
        <label>What should it have said? <input name="correction" maxlength="8000" required /></label><button>Send</button></form>`}`;
  }
}
