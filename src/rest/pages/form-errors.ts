/** Lists the errors of a form at its top, each with a link to its field. */
import type { AppError } from "../../errors.js";
import { type Html, html } from "./html.js";

export interface LabelledField {
  readonly id: string;
  readonly label: string;
}

/** By the services' parameter names. */
export type FieldsByParam = ReadonlyMap<string, LabelledField>;

interface Finding {
  readonly field: LabelledField | undefined;
  readonly message: string;
}

export function errorSummary(error: AppError, fields: FieldsByParam = new Map()): Html {
  const findings = findingsOf(error, fields);
  const [only] = findings;
  if (only && findings.length === 1) return html`<p class="error" role="alert" id="wrong">${toLine(only)}</p>`;
  return html`<div class="error" role="alert" id="wrong"><p>Correct these fields:</p>
<ul>${findings.map((finding) => html`<li>${toLine(finding)}</li>`)}</ul></div>`;
}

export function invalidMark(error: AppError | undefined, fields: FieldsByParam, id: string): Html | "" {
  if (!error || !findingsOf(error, fields).some(({ field }) => field?.id === id)) return "";
  return html` aria-invalid="true"`;
}

function findingsOf({ message, param, details }: AppError, fields: FieldsByParam): readonly Finding[] {
  const found =
    details && "fieldErrors" in details
      ? Object.entries(details.fieldErrors as Readonly<Record<string, readonly string[]>>).flatMap(([path, messages]) =>
          messages.map((text) => toFinding(path, text, fields)),
        )
      : [];
  return found.length > 0 ? found : [{ field: param === undefined ? undefined : fields.get(param), message }];
}

/** Errors of list items belong to the whole list. A message in lower case continues the field's name; others are sentences. */
function toFinding(path: string, text: string, fields: FieldsByParam): Finding {
  const field = fields.get(path) ?? fields.get(path.split(".", 1)[0] ?? "");
  const name = field?.label ?? path;
  const isSentence = field !== undefined && text.endsWith(".");
  const message = isSentence ? text : `${name}${/^[a-z]/.test(text) ? "" : ":"} ${text}`;
  return { field, message: message.endsWith(".") ? message : `${message}.` };
}

function toLine({ field, message }: Finding): Html {
  return field ? html`<a href="#${field.id}">${message}</a>` : html`${message}`;
}
