/** Bringing a code agent to its repository's latest commit. */
import { type SyncedAgent, syncAgentInput } from "../../services/agents/agent-sync.js";
import { parseInput } from "../../services/requests/input.js";
import { builder } from "../builder.js";

const SyncAgentPayload = builder.objectRef<SyncedAgent>("SyncAgentPayload").implement({
  fields: (t) => ({
    updated: t.exposeBoolean("updated", { description: "False: the latest commit was deployed already." }),
    deployedCommitSha: t.exposeString("deployedCommitSha", { description: "40 hexadecimal digits." }),
  }),
});

builder.mutationField("syncAgent", (t) =>
  t.field({
    type: SyncAgentPayload,
    nullable: true,
    description: "Deploys the latest commit of a code agent's repository; once in 30 seconds. Open to all.",
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("SyncAgentInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => ctx.services.agentSync.sync(ctx, parseInput(syncAgentInput, input).id),
  }),
);
