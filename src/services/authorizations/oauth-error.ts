/** A refusal for OAuth clients, with its registered name (RFC 6749 5.2, RFC 8628 3.5). Elsewhere it is a BAD_REQUEST. */
import { AppError } from "../../errors.js";

export type OAuthErrorName =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unsupported_grant_type"
  | "invalid_scope"
  /** RFC 8707 2. */
  | "invalid_target"
  /** RFC 7591 3.2.2. */
  | "invalid_redirect_uri"
  | "invalid_client_metadata"
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token";

export class OAuthError extends AppError {
  constructor(
    readonly error: OAuthErrorName,
    description: string,
    /** The wrong parameter, by its registered name. */
    param?: string,
  ) {
    super("BAD_REQUEST", description, { ...(param !== undefined && { param }) });
  }
}
