import { type GraphQLSchema, printSchema, specifiedDirectives } from "graphql";
import { builder } from "./builder.js";
import { INCREMENTAL_DIRECTIVES } from "./incremental-delivery.js";
import { nameFieldsAsTheSchemaDoes } from "./input-names.js";
import { noteGenerations } from "./plugins/use-request-note.js";
import { refuseUnstorableArguments } from "./storable-arguments.js";
import "./types/account-administration.js";
import "./types/account-data.js";
import "./types/accounts.js";
import "./types/agents.js";
import "./types/api-keys.js";
import "./types/app-usage.js";
import "./types/audio.js";
import "./types/audit.js";
import "./types/authorizations.js";
import "./types/books.js";
import "./types/chat.js";
import "./types/community-model-mutations.js";
import "./types/community-models.js";
import "./types/credit-grants.js";
import "./types/device-authorizations.js";
import "./types/earnings.js";
import "./types/earnings-administration.js";
import "./types/embeddings.js";
import "./types/gateway.js";
import "./types/generations.js";
import "./types/images.js";
import "./types/integrations.js";
import "./types/live.js";
import "./types/low-balance.js";
import "./types/media.js";
import "./types/model-health.js";
import "./types/models.js";
import "./types/moderations.js";
import "./types/quotes.js";
import "./types/rerank.js";
import "./types/operators.js";
import "./types/own-community-models.js";
import "./types/request-log.js";
import "./types/presets.js";
import "./types/runs.js";
import "./types/responses.js";
import "./types/stored-responses.js";
import "./types/sessions.js";
import "./types/margins.js";
import "./types/routes.js";
import "./types/route-mutations.js";
import "./types/spend.js";
import "./types/token-counts.js";
import "./types/billing.js";
import "./types/sales.js";
import "./types/alerts.js";
import "./types/top-ups.js";
import "./types/usage.js";
import "./types/usage-lists.js";
import "./types/model-activity.js";
import "./types/usage-limits.js";
import "./types/vendor-keys.js";
import "./types/webhooks.js";

/** Shared by all servers of a process. State of one server is in the context of its requests. */
export const schema: GraphQLSchema = builder.toSchema({
  sortSchema: false,
  directives: [...specifiedDirectives, ...INCREMENTAL_DIRECTIVES],
});

// `storable-arguments` must run inside `input-names`, which converts the names in its errors.
refuseUnstorableArguments(schema);
nameFieldsAsTheSchemaDoes(schema);
noteGenerations(schema);

/** Prints the contract for schema/schema.graphql. */
export function printSdl(): string {
  return `${printSchema(schema)}\n`;
}
