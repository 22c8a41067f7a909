/**
 * The gateway as a protected resource of OAuth (RFC 9728), and resource indicators (RFC 8707): a key may be granted for `/mcp` or for the
 * whole gateway, and one that was granted for another address is refused at `/mcp`.
 */
import { isAgentAtWork, type KeyCaller, type RequestContext } from "../../context.js";
import { credentialRefused } from "../../errors.js";
import { withoutTrailing } from "../../lib/urls.js";
import { requireCaller } from "./permissions.js";

export const MCP_PATH = "/mcp";
/** RFC 9728 3.1: the resource's path follows. */
export const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";

export interface ResourceMetadata {
  readonly resource: string;
  readonly authorizationServer: string;
  readonly name: string;
}

export class ProtectedResources {
  /** `baseUrl`: the gateway's address; `issuer`: the authorization host's. Both as clients know them. */
  constructor(
    private readonly baseUrl: () => string,
    private readonly issuer: () => string,
  ) {}

  /** Address of the metadata of `/mcp`, which a 401 of it names (RFC 9728 5.1). */
  get mcpMetadataUrl(): string {
    return this.base + RESOURCE_METADATA_PATH + MCP_PATH;
  }

  /** The metadata of `/mcp`. */
  get mcpMetadata(): ResourceMetadata {
    return { resource: this.mcp, authorizationServer: this.issuer(), name: "Sluice MCP" };
  }

  get gatewayMetadata(): ResourceMetadata {
    return { resource: this.base, authorizationServer: this.issuer(), name: "Sluice" };
  }

  /** The resource in its stored form; null for text that names none of this gateway's. */
  read(text: string): string | null {
    const asked = toCanonical(text);
    return asked === this.base || asked === this.mcp ? asked : null;
  }

  get refusal(): string {
    return `The resource must be ${this.mcp} or ${this.base}.`;
  }

  /** Whether a grant for `granted` covers `asked`: the gateway covers `/mcp`, and a grant that is not bound covers everything. */
  covers(granted: string | null, asked: string): boolean {
    return granted === null || granted === asked || (granted === this.base && asked === this.mcp);
  }

  /** Throws UNAUTHORIZED for a key that was granted for another address. A run of an agent acts for its caller, and is not judged. */
  assertUsableAtMcp(ctx: RequestContext): void {
    const caller = requireCaller(ctx);
    if (caller.kind !== "key" || isAgentAtWork(caller)) return;
    const { resource } = caller;
    if (resource == null || this.covers(resource, this.mcp)) return;
    throw grantedForAnother(caller);
  }

  private get base(): string {
    return toCanonical(this.baseUrl()) ?? this.baseUrl();
  }

  private get mcp(): string {
    return this.base + MCP_PATH;
  }
}

function grantedForAnother({ resource }: KeyCaller): Error {
  return credentialRefused(`This key was granted for ${resource}, not for this address. Sign in again.`);
}

/** RFC 8707 2: an absolute URI without a fragment. Scheme and host in lower case, without a trailing slash; null for other text. */
function toCanonical(text: string): string | null {
  if (/[#\s]/.test(text) || !URL.canParse(text)) return null;
  const { protocol, username, password, href } = new URL(text);
  return /^https?:$/.test(protocol) && !username && !password ? withoutTrailing(href, "/") : null;
}
