/** Everything that the faces may call: built once in `app.ts`. */
import type { Access } from "./access.js";
import type { Accounts } from "./accounts.js";
import type { ApiKeys } from "./api-keys.js";
import type { Catalog } from "./catalog.js";
import type { FormTokens } from "./form-tokens.js";
import type { AudioGeneration } from "./generation/audio.js";
import type { ChatCompletions } from "./generation/chat.js";
import type { Embeddings } from "./generation/embeddings.js";
import type { Images } from "./generation/images.js";
import type { GenerationJobs } from "./generation/jobs.js";
import type { Moderations } from "./generation/moderations.js";
import type { Music } from "./generation/music.js";
import type { RealtimeSessions } from "./generation/realtime.js";
import type { Responses } from "./generation/responses.js";
import type { Speech } from "./generation/speech.js";
import type { TextGeneration } from "./generation/text.js";
import type { Transcriptions } from "./generation/transcriptions.js";
import type { Videos } from "./generation/videos.js";
import type { Idempotency } from "./idempotency.js";
import type { LiveAccount } from "./live.js";
import type { MediaLinks } from "./media-links.js";
import type { UsageRecords } from "./usage.js";

export interface Services {
  readonly access: Access;
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  readonly audio: AudioGeneration;
  readonly catalog: Catalog;
  readonly chat: ChatCompletions;
  readonly embeddings: Embeddings;
  readonly formTokens: FormTokens;
  readonly jobs: GenerationJobs;
  readonly images: Images;
  readonly idempotency: Idempotency;
  readonly live: LiveAccount;
  readonly mediaLinks: MediaLinks;
  readonly moderations: Moderations;
  readonly music: Music;
  readonly realtime: RealtimeSessions;
  readonly responses: Responses;
  readonly speech: Speech;
  readonly text: TextGeneration;
  readonly transcriptions: Transcriptions;
  readonly usage: UsageRecords;
  readonly videos: Videos;
}
