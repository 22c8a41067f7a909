/**
 * How many gateways a request has come through: each tells the next in a header, so that a model whose upstream is a gateway cannot
 * go in circles.
 */

export const HOPS_HEADER = "x-sluice-hops";

const WHOLE_NUMBER = /^\d{1,9}$/;

/** Undefined without the header. Infinite when it says no number: whoever meddles with it has no claim to go further. */
export function readHops(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  return typeof header === "string" && WHOLE_NUMBER.test(header) ? Number(header) : Number.POSITIVE_INFINITY;
}
