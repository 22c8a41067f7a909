/** HTML for server-rendered pages: a template that escapes whatever is put into it. */
import { html } from "hono/html";

/** Escaped markup. A string that is put into a template is text; only this is taken as it is. */
export type Html = ReturnType<typeof html>;

export { html };
