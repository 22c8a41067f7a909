/** `return_to`: our page to return to after sign-in. It is never another site. */
import * as z from "zod";

/** Unspecified: an authorization request with a long list of models fits. */
const CHARS_MAX = 8_192;
/** One slash, not followed by anything that browsers treat as a second one or ignore. */
const LOCAL_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** Anything but a local path counts as absent. */
export const returnToInput = z.string().max(CHARS_MAX).regex(LOCAL_PATH).optional().catch(undefined);

/** The query that passes it on in a link or form target. */
export function returnToQuery(returnTo: string | undefined): string {
  return returnTo === undefined ? "" : `?return_to=${encodeURIComponent(returnTo)}`;
}

/** The default target. */
export const HOME_PATH = "/dashboard";
