/** Pages as a browser without scripts sees and sends them: the fields of a form as they stand, and cookies that are kept. */
import { signedIn } from "./sign-in.js";

export interface PageForm {
  readonly action: string;
  /** What would be sent if nothing were touched; of a checkbox group every value that is ticked. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Page {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** The text without its markup, on one line. */
  readonly text: string;
  readonly forms: readonly PageForm[];
}

/** A field to fill in; a list ticks exactly these, null leaves the field out. */
export type Filled = Readonly<Record<string, string | readonly string[] | null>>;

export interface Visitor {
  open(path: string, headers?: Readonly<Record<string, string>>): Promise<Page>;
  /** Sends the form of `page` that goes to `action`, with some of its fields changed. */
  send(page: Page, action: string, filled?: Filled, headers?: Readonly<Record<string, string>>): Promise<Page>;
}

export function visit(baseUrl: string, person: { readonly cookie: string } | null): Visitor {
  const own = person === null ? {} : signedIn(person);
  const read = async (path: string, init: RequestInit): Promise<Page> => {
    const response = await fetch(new URL(path, baseUrl), { redirect: "manual", ...init });
    const html = await response.text();
    return { status: response.status, headers: response.headers, html, text: textOf(html), forms: formsOf(html) };
  };
  return {
    open: (path, headers = {}) => read(path, { headers: { ...own, ...headers } }),
    send: (page, action, filled = {}, headers = {}) => {
      const form = page.forms.find((candidate) => candidate.action === action);
      if (!form) throw new Error(`No form goes to ${action}: ${page.text}`);
      const kept = form.fields.filter(([name]) => !(name in filled));
      const added = Object.entries(filled).flatMap(([name, value]) => [value ?? []].flat().map((one): [string, string] => [name, one]));
      const body = new URLSearchParams([...kept, ...added].map(([name, value]): [string, string] => [name, value]));
      return read(action, { method: "POST", headers: { ...own, ...headers }, body });
    },
  };
}

function textOf(html: string): string {
  const body = html.slice(html.indexOf("<main>"));
  return decode(body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ")).trim();
}

function formsOf(html: string): PageForm[] {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/g)].map(([, attributes = "", inside = ""]) => ({
    action: attributeOf(attributes, "action") ?? "",
    fields: [...inside.matchAll(/<input\b([^>]*)>/g)].flatMap(([, input = ""]): [string, string][] => {
      const name = attributeOf(input, "name");
      const isChoice = /type="(?:checkbox|radio)"/.test(input);
      if (name === null || (isChoice && !/\schecked(?:\s|$)/.test(input))) return [];
      return [[name, attributeOf(input, "value") ?? ""]];
    }),
  }));
}

function attributeOf(tag: string, name: string): string | null {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? null : decode(value);
}

function decode(text: string): string {
  const names: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
  return text.replace(/&(?:#(\d+)|(\w+));/g, (whole, number: string | undefined, name = "") =>
    number === undefined ? (names[name] ?? whole) : String.fromCodePoint(Number(number)),
  );
}
