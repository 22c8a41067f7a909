/** HTML for server-rendered pages: a template that escapes its values. */
import { html } from "hono/html";

/** Escaped markup. Strings in a template are escaped as text; only this type is not. */
export type Html = ReturnType<typeof html>;

export { html };
