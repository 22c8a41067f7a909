/** Checks the address of a model's upstream at registration (docs/spec/outbound.md); each call checks it again. */
import { invalidInput } from "../../errors.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import type { Addresses } from "../../lib/urls.js";

export class UpstreamUrls {
  /** `addresses` is a function because a port chosen by the system is known only later. */
  constructor(
    private readonly outbound: OutboundGuard,
    private readonly addresses: () => Addresses,
  ) {}

  /** As `check`, without resolving the host: a connection to it does that. */
  parse(text: string, param: string): URL {
    try {
      const url = this.outbound.parse(text);
      this.assertNotOwn(url);
      return url;
    } catch (error) {
      throw toInputError(error, param);
    }
  }

  /**
   * Returns the stored form. Rejects with BAD_REQUEST naming `param` for an address that is not allowed, or whose host is not public at
   * this moment.
   */
  async check(text: string, param: string): Promise<string> {
    try {
      const url = await this.outbound.check(text);
      this.assertNotOwn(url);
      return url.href;
    } catch (error) {
      throw toInputError(error, param);
    }
  }

  private assertNotOwn(url: URL): void {
    if (this.isOwn(url)) throw new OutboundError("url", "This URL is the gateway's own.");
  }

  /** An allowed host may have other services beside the gateway, at other ports. */
  private isOwn(url: URL): boolean {
    const own = Object.values(this.addresses()).map((address) => new URL(address));
    return own.some(({ hostname, port, protocol }) => {
      if (hostname !== url.hostname) return false;
      return !this.outbound.isExempt(url) || portOf({ port, protocol }) === portOf(url);
    });
  }
}

function toInputError(error: unknown, param: string): unknown {
  return error instanceof OutboundError ? invalidInput(error.message, param) : error;
}

function portOf({ port, protocol }: Pick<URL, "port" | "protocol">): string {
  return port || (protocol === "https:" ? "443" : "80");
}
