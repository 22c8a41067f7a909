/** A choice of all or some models without script: `model_choice` is `all` or `chosen`, and `models` are the ticked ones. */
import { type Html, html } from "./html.js";

export interface ListedModel {
  readonly id: string;
  readonly title: string;
}

export interface ChosenModels {
  readonly isEveryModel: boolean;
  readonly models: ReadonlySet<string>;
}

/** Offers every model; the list opens on demand. */
export function everyModelOrSome(models: readonly ListedModel[], chosen: ChosenModels): Html {
  return html`<fieldset class="models" id="models">
<legend>Allowed models</legend>
${choice("radio", "model_choice", "all", chosen.isEveryModel, "All models, including future ones")}
${choice("radio", "model_choice", "chosen", !chosen.isEveryModel, "Selected models:")}
${modelList(models, chosen)}
</fieldset>`;
}

export function someOf(ids: readonly string[], models: readonly ListedModel[], chosen: ChosenModels): Html {
  const listed = ids.map((id) => models.find((model) => model.id === id) ?? { id, title: id });
  return html`<fieldset id="models">
<legend>Allowed models</legend>
${modelList(listed, chosen)}
</fieldset>`;
}

export function choice(type: "checkbox" | "radio", name: string, value: string, isChecked: boolean, label: string | Html): Html {
  return html`<label class="choice"><input type="${type}" name="${name}" value="${value}"${isChecked ? html` checked` : ""}> <span>${label}</span></label>
`;
}

function modelList(models: readonly ListedModel[], chosen: ChosenModels): Html {
  const choices = models.map(({ id, title }) =>
    choice("checkbox", "models", id, chosen.models.has(id), title === id ? html`${id}` : html`${title} <small>${id}</small>`),
  );
  return html`<div class="${models.length > 6 ? "list scroll" : "list"}">${choices}</div>`;
}
