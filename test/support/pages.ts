/** Loads pages and submits their forms like a browser without scripts. */

export interface PageChoice {
  readonly name: string;
  readonly value: string;
  readonly isChecked: boolean;
}

export interface PageForm {
  readonly action: string;
  /** Fields that are submitted unless they are changed, without the button. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Checkboxes and radio buttons. */
  readonly choices: readonly PageChoice[];
  readonly buttons: readonly { readonly name: string; readonly value: string }[];
}

export interface ShownPage {
  readonly status: number;
  readonly headers: Headers;
  /** Target of a redirect, otherwise null. */
  readonly location: string | null;
  readonly html: string;
  /** Visible text on one line. */
  readonly text: string;
  readonly forms: readonly PageForm[];
}

export interface Submission {
  readonly cookie?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Name and value of the clicked button. */
  readonly button?: readonly [name: string, value: string];
  /** Fields to change or add. An empty list removes a field. */
  readonly set?: Readonly<Record<string, string | readonly string[]>>;
}

/** Does not follow redirects. */
export async function openPage(baseUrl: string, path: string, options: Pick<Submission, "cookie" | "headers"> = {}): Promise<ShownPage> {
  return show(baseUrl, path, { headers: headersOf(options) });
}

/** Submits a form. */
export async function submitForm(baseUrl: string, { action, fields }: PageForm, submission: Submission = {}): Promise<ShownPage> {
  const { set = {}, button } = submission;
  const body = new URLSearchParams();
  for (const [name, value] of fields) if (!Object.hasOwn(set, name)) body.append(name, value);
  for (const [name, values] of Object.entries(set)) for (const value of [values].flat()) body.append(name, value);
  if (button) body.append(...(button as [string, string]));
  return show(baseUrl, action, { method: "POST", body, headers: headersOf(submission) });
}

/** Finds the form with an action. */
export function formTo({ forms, text }: ShownPage, action: string): PageForm {
  const form = forms.find((candidate) => candidate.action === action);
  if (!form) throw new Error(`No form has the action ${action}: ${text}`);
  return form;
}

/** Adds the fetch metadata that browsers send. */
function headersOf({ cookie, headers }: Pick<Submission, "cookie" | "headers">): Record<string, string> {
  return { ...(cookie !== undefined && { Cookie: cookie }), "Sec-Fetch-Site": "same-origin", ...headers };
}

async function show(baseUrl: string, path: string, init: RequestInit): Promise<ShownPage> {
  const response = await fetch(new URL(path, baseUrl), { ...init, redirect: "manual" });
  const html = await response.text();
  const { status, headers } = response;
  return { status, headers, location: headers.get("location"), html, text: textOf(html), forms: formsOf(html) };
}

function textOf(html: string): string {
  const body = html.slice(Math.max(0, html.indexOf("<main>")));
  return decode(body.replace(/<\/?(?:b|bdi|em|small|span|strong|time)\b[^>]*>/g, "").replace(/<[^>]*>/g, " "))
    .replace(/\s+/g, " ")
    .trim();
}

function formsOf(html: string): PageForm[] {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)].map(([, attributes = "", inside = ""]) => {
    const inputs = [...inside.matchAll(/<input\b([^>]*)>/g)].map(([, input = ""]) => ({
      name: attributeOf(input, "name") ?? "",
      value: attributeOf(input, "value") ?? "",
      isChoice: /\stype="(?:checkbox|radio)"/.test(input),
      isChecked: /\schecked(?:\s|$)/.test(input),
    }));
    const buttons = [...inside.matchAll(/<button\b([^>]*)>/g)].flatMap(([, button = ""]) => {
      const name = attributeOf(button, "name");
      return name === null ? [] : [{ name, value: attributeOf(button, "value") ?? "" }];
    });
    return {
      action: attributeOf(attributes, "action") ?? "",
      fields: inputs.flatMap(({ name, value, isChoice, isChecked }) => (isChoice && !isChecked ? [] : [[name, value] as const])),
      choices: inputs.flatMap(({ name, value, isChoice, isChecked }) => (isChoice ? [{ name, value, isChecked }] : [])),
      buttons,
    };
  });
}

function attributeOf(tag: string, name: string): string | null {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? null : decode(value);
}

const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };

function decode(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (whole, number: string | undefined, name = "") =>
    number === undefined ? (NAMED[name] ?? whole) : String.fromCodePoint(Number(number)),
  );
}
