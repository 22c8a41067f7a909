/** `return_to`: the page of ours that somebody is sent back to after signing in. Whatever else it may be, it is never another site. */
import * as z from "zod";

/** Unspecified: an authorization request with a long list of models fits. */
const CHARS_MAX = 8_192;
/** One slash, and nothing that a browser would take for a second one or pass over. */
const LOCAL_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;

/** What is not a local path counts as none. */
export const returnToInput = z.string().max(CHARS_MAX).regex(LOCAL_PATH).optional().catch(undefined);

/** Of a link or form target: the query that passes it on. */
export function returnToQuery(returnTo: string | undefined): string {
  return returnTo === undefined ? "" : `?return_to=${encodeURIComponent(returnTo)}`;
}

/** Where people are led who came for nothing in particular. */
export const HOME_PATH = "/dashboard";
