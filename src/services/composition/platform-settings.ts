/** What the platform is configured with. */
import type { GitHubSettings, S3Settings, Tier } from "../../lib/settings.js";
import type { UpstreamTimeouts } from "../../providers/provider.js";
import type { RateLimitSettings } from "../access/rate-limits.js";
import type { CatalogSettings } from "../catalog/catalog.js";
import type { MediaQuotaSettings } from "../files/media-quotas.js";
import type { IntegrationsSettings } from "../integrations/http-broker.js";
import type { McpServerId } from "../mcp/mcp-tools.js";
import type { MetricsSettings } from "../metrics/report.js";

export interface PlatformSettings extends CatalogSettings {
  readonly dataDir: string;
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  /** Null: events between processes go through the database. */
  readonly redisUrl: string | null;
  /** Null: blobs are files under the data directory. */
  readonly s3: S3Settings | null;
  /** Null: made and kept under the data directory. */
  readonly encryptionKey: string | null;
  readonly ownerApiKey: string | null;
  readonly ownerCredits: bigint;
  readonly timeouts: UpstreamTimeouts;
  /** How long a hold waits for what others hold, before it is refused. */
  readonly contendedHoldWaitMs: number;
  /** Hosts that the outbound guard lets users name. */
  readonly upstreamAllowHosts: readonly string[];
  readonly rateLimits: RateLimitSettings;
  readonly tiers: readonly Tier[];
  /** Of all tier buckets together, in nanocredits; null: no cap. */
  readonly freeSpendPerDay: bigint | null;
  readonly mediaQuota: MediaQuotaSettings;
  readonly requestBodiesBytes: number;
  readonly metrics: MetricsSettings;
  /** Who may make an account: whoever reaches the gateway, or operators alone. */
  readonly signUp: "open" | "closed";
  /** Of one address, of one e-mail address, and of sign-ups of one address. */
  readonly signInAttemptsPerMinute: number;
  /** scrypt's N. */
  readonly passwordCost: number;
  /** Where people sign in, when that host answers nothing that a model made; null when it is the host of everything else. */
  readonly sessionHost: string | null;
  /** Null: nobody signs in with it. */
  readonly github: GitHubSettings | null;
  /** Of MCP servers, by the ids that agents know them by; those left out are not there. */
  readonly mcpServers: Readonly<Partial<Record<McpServerId, string>>>;
  /** Sent to them as bearer tokens. */
  readonly mcpServerKeys: Readonly<Partial<Record<McpServerId, string>>>;
  /** An id or alias; null when there is none. */
  readonly moderationModel: string | null;
  /** Who keeps the connections to outside apps. */
  readonly integrations: IntegrationsSettings;
}
