/** Creates the storage of responses, in order of dependency. */
import type { Logger } from "pino";
import type { Clock } from "../../../lib/clock.js";
import type { PageRequest } from "../../../lib/pagination.js";
import type { LateFailureObserver } from "../../../lib/request-note.js";
import type { Database } from "../../../store/database.js";
import type { Events } from "../../../store/events.js";
import type { BodyBudget } from "../../requests/body-budget.js";
import type { Safety } from "../../safety/safety.js";
import type { SecretBox } from "../../secrets/secret-box.js";
import type { Responses } from "../chat/responses.js";
import { BackgroundResponses } from "./background.js";
import { ConversationRows } from "./conversation-rows.js";
import { Conversations } from "./conversations.js";
import { FollowedResponses } from "./followed.js";
import { ResponseKeeper, type StorageRoom } from "./keeper.js";
import { StoredResponseRows } from "./rows.js";
import { StoredResponses } from "./stored-responses.js";
import { StoringResponses } from "./storing.js";
import { Threads } from "./threads.js";

interface StoredParts {
  readonly database: Database;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly processId: string;
  /** Days that responses are kept; 0: they are not stored here. */
  readonly days: number;
  readonly responses: Responses;
  readonly room: StorageRoom;
  readonly bodies: BodyBudget;
  readonly safety: Safety;
  readonly events: Events;
  readonly failures: LateFailureObserver;
  readonly log: Logger;
}

export function createStored(parts: StoredParts) {
  const { database, box, clock, processId, days, responses, room, bodies, safety, events, failures, log } = parts;
  const rows = new StoredResponseRows(database, box, clock, processId, days);
  const conversationRows = new ConversationRows(database, box, clock, days);
  const keeper = new ResponseKeeper({ rows, conversations: conversationRows, room, safety, log });
  const threads = new Threads({ database, rows, conversations: conversationRows, bodies, days });
  const followed = new FollowedResponses(rows, events);
  const background = new BackgroundResponses({ database, responses, rows, keeper, followed, events, failures, log });
  return {
    responses: new StoringResponses({ responses, threads, keeper, background }),
    storedResponses: new StoredResponses({ database, rows, followed, events, room, days }),
    conversations: new Conversations({ database, rows: conversationRows, room, days }),
    storedExports: {
      exportResponses: (accountId: string, page: PageRequest) => rows.export(accountId, page),
      exportConversations: (accountId: string, page: PageRequest) => conversationRows.export(accountId, page),
    },
    storedWork: {
      open: () => background.open(),
      /** Call when no generation is under way. */
      close: async () => {
        await background.close();
        await keeper.close();
      },
      recover: () => background.sweep(),
      sweep: async () => (await rows.sweep()) + (await conversationRows.sweep()),
    },
  };
}
