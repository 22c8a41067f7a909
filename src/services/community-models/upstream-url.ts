/** The address of a model's upstream, judged when it is registered (docs/spec/outbound.md); each call judges it again. */
import { invalidInput } from "../../errors.js";
import { OutboundError, type OutboundGuard } from "../../lib/outbound-guard.js";
import type { Addresses } from "../../lib/urls.js";

export class UpstreamUrls {
  /** `addresses` is asked each time: a port that the system chooses is known by then. */
  constructor(
    private readonly outbound: OutboundGuard,
    private readonly addresses: () => Addresses,
  ) {}

  /** As `check`, without asking whose host it is: a connection to it asks. */
  parse(text: string, param: string): URL {
    try {
      const url = this.outbound.parse(text);
      this.assertNotOwn(url);
      return url;
    } catch (error) {
      throw toInputError(error, param);
    }
  }

  /** The URL as it is stored; BAD_REQUEST naming `param` when it may not be asked for, or its host is not public at this moment. */
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

  /** A host that the operator allows may serve other things beside the gateway, at other ports. */
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
