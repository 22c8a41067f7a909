/** Errors of Stripe's package. */
export interface StripeFailure extends Error {
  readonly type: string;
  readonly code?: string;
  readonly param?: string;
}

/** By its shape, so that the package need not be loaded. */
export function isStripeError(error: unknown): error is StripeFailure {
  return error instanceof Error && "type" in error && typeof error.type === "string" && error.type.startsWith("Stripe");
}

export function isOfType(error: unknown, type: string): error is StripeFailure {
  return isStripeError(error) && error.type === type;
}

export function codeOf(error: unknown): string | null {
  return isStripeError(error) ? (error.code ?? null) : null;
}

export function isMissing(error: unknown, param?: string): boolean {
  return isStripeError(error) && error.code === "resource_missing" && (param === undefined || error.param === param);
}
