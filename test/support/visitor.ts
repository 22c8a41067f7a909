/** A person at a browser without scripts, signed in or not. */
import { formTo, openPage, type ShownPage, type Submission, submitForm } from "./pages.js";

export type Filled = Readonly<Record<string, string | readonly string[] | null>>;

export interface Visitor {
  open(path: string): Promise<ShownPage>;
  /** Sends the form of `page` that goes to `action`, with some of its fields changed; null leaves one out. */
  send(page: ShownPage, action: string, filled?: Filled, headers?: Submission["headers"]): Promise<ShownPage>;
}

export function visit(baseUrl: string, person: { readonly cookie: string } | null): Visitor {
  const own = person === null ? {} : { cookie: person.cookie };
  return {
    open: (path) => openPage(baseUrl, path, own),
    send: (page, action, filled = {}, headers = {}) => {
      const set = Object.fromEntries(Object.entries(filled).map(([name, value]) => [name, value ?? []]));
      return submitForm(baseUrl, formTo(page, action), { ...own, set, headers });
    },
  };
}
