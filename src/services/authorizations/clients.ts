/** The client of an authorization request, by its client id: an app key, a registration, or the address of a document. */
import type { RequestContext } from "../../context.js";
import { invalidInput } from "../../errors.js";
import type { RedirectUrl } from "../api-keys/redirect-url.js";
import type { App, Apps } from "./apps.js";
import { type ClientDocuments, isDocumentAddress } from "./client-documents.js";
import type { UnverifiedClient } from "./client-metadata.js";
import type { ClientRegistrations } from "./client-registrations.js";

/** At most one of them; neither: the client does not identify itself. */
export interface AskingClient {
  /** Known by the app key of an account. */
  readonly app: App | null;
  readonly client: UnverifiedClient | null;
}

const REGISTERED = /^app_/;

export class Clients {
  constructor(
    private readonly apps: Apps,
    private readonly registrations: ClientRegistrations,
    private readonly documents: ClientDocuments,
  ) {}

  /** Rejects with BAD_REQUEST for an id that is not good, and RATE_LIMITED. */
  async identify(ctx: RequestContext, clientId: string | null, redirect: RedirectUrl): Promise<AskingClient> {
    if (clientId === null) return { app: null, client: null };
    if (isDocumentAddress(clientId)) return { app: null, client: await this.findDocumented(ctx, clientId, redirect) };
    if (!REGISTERED.test(clientId)) return { app: await this.apps.identify(clientId), client: null };
    const client = this.registrations.find(clientId);
    if (client) return { app: null, client };
    throw invalidInput(
      "The client ID is unknown here, or has expired: the app must register again. Sign out in the app, and sign in again.",
      "clientId",
    );
  }

  /**
   * A gateway that cannot reach the document knows nothing of a program on the person's own machine, as of one that sends no client id at
   * all: the page shows it without a name. Another redirect address is refused.
   */
  private async findDocumented(ctx: RequestContext, id: string, { isLoopback }: RedirectUrl): Promise<UnverifiedClient> {
    return (await this.documents.read(ctx, id, isLoopback)) ?? { id, name: null, redirectUrls: [], documentHost: null };
  }
}
