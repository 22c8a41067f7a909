/** Runs: an envelope of credits and time for a series of calls (docs/spec/runs.md). */
import { formatNanocredits } from "../../lib/money.js";
import type { Page } from "../../lib/pagination.js";
import { parsePermitted } from "../../services/access/permissions.js";
import { RUNS_BELOW_MAX } from "../../services/runs/limits.js";
import {
  approveRunInput,
  askedOf,
  createRunInput,
  leftOf,
  type RunRow,
  type RunStatus,
  requirePayer,
  type SelectedRun,
  statusOf,
} from "../../services/runs/runs.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { readId } from "../global-ids.js";
import { edgesBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const NEEDS_SECRET = "Needs a session or a secret key.";
/** Reading all runs below a run. */
const BELOW_COST = 20;

const RunStatusEnum = builder.enumType("RunStatus", {
  description: "Whether a run takes calls.",
  values: describedValues<RunStatus>({
    open: "The run takes calls.",
    ended: "The run was ended, or the key above it was revoked.",
    expired: "The time of the run is over.",
  }),
});

const RunLimitAction = builder.enumType("RunLimitAction", {
  description: "The effect on a call for which its run has too few credits left.",
  values: describedValues<RunRow["onLimit"]>({
    refuse: "The call fails with KEY_BUDGET_EXHAUSTED.",
    ask: "The call waits up to five minutes for the payer. `runChanged` and the webhook `run.asked` announce it.",
  }),
});

const MONEY = { key: { select: { budgetNanocredits: true, spentNanocredits: true, heldNanocredits: true } } } as const;
const ENDS = { key: { select: { expiresAt: true, revokedAt: true } } } as const;

const belowOf = edgesBatchedBy<null, readonly SelectedRun[]>((ctx, ids, _args, select) => ctx.services.runs.below(ctx, ids, select));

const Run = builder.prismaObject("Run", {
  description: "An envelope of credits and time for a series of calls, with a key of its own.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) => byId(await ctx.services.runs.getMany(ctx, ids, selectionOf(ctx, info, [], "Run")))),
  fields: (t) => ({
    label: t.exposeString("label", { nullable: true, description: "The name that it was given." }),
    status: t.field({
      type: RunStatusEnum,
      description: "Whether the run takes calls.",
      select: ENDS,
      resolve: ({ key }) => statusOf(key, new Date()),
    }),
    parentId: t.id({
      nullable: true,
      description: "The REST ID of the key that created the run, which may be that of a run. Null: a signed-in person.",
      select: { key: { select: { parentId: true } } },
      resolve: ({ key }) => key.parentId,
    }),
    maxCost: t.field({
      type: "Credits",
      description: "The most that all calls of the run, and of the runs below it, may cost.",
      select: MONEY,
      resolve: ({ key }) => formatNanocredits(key.budgetNanocredits ?? 0n),
    }),
    spent: t.field({
      type: "Credits",
      description: "The cost of the calls of the run and of the runs below it.",
      select: MONEY,
      resolve: ({ key }) => formatNanocredits(key.spentNanocredits),
    }),
    held: t.field({
      type: "Credits",
      description: "Credits that are set aside for calls under way.",
      select: MONEY,
      resolve: ({ key }) => formatNanocredits(key.heldNanocredits),
    }),
    left: t.field({
      type: "Credits",
      description: "Credits that are not spent yet.",
      select: MONEY,
      resolve: ({ key }) => formatNanocredits(leftOf(key)),
    }),
    onLimit: t.field({
      type: RunLimitAction,
      description: "The effect on a call for which too few credits are left.",
      select: { onLimit: true },
      resolve: ({ onLimit }) => onLimit,
    }),
    asked: t.field({
      type: "Credits",
      nullable: true,
      description: "The most that a waiting call lacks. Null when no call waits.",
      select: { askedNanocredits: true, askedAt: true },
      resolve: (row) => {
        const asked = askedOf(row, new Date());
        return asked === null ? null : formatNanocredits(asked);
      },
    }),
    askedAt: t.expose("askedAt", { type: "DateTime", nullable: true, description: "When a call last began to wait." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the run was created." }),
    expiresAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the run takes no more calls.",
      select: ENDS,
      resolve: ({ key }) => key.expiresAt,
    }),
  }),
});

builder.prismaObjectField(Run, "below", (t) =>
  t.field({
    type: [Run],
    nullable: true,
    description: `All runs below this one, at any depth, newest first, at most ${RUNS_BELOW_MAX}.`,
    complexity: { field: BELOW_COST, multiplier: RUNS_BELOW_MAX },
    resolve: async ({ id }, _args, ctx, info) => [...((await belowOf(ctx, id, null, selectionOf(ctx, info))) ?? [])],
  }),
);

builder.queryField("run", (t) =>
  t.field({
    type: Run,
    nullable: true,
    description: `A run of the account. The key of a run may read that run. ${NEEDS_SECRET}`,
    args: { id: t.arg.id({ required: true, description: "The ID of the run." }) },
    resolve: (_root, { id }, ctx, info) => ctx.services.runs.get(ctx, readId(id, "Run", "id"), selectionOf(ctx, info)),
  }),
);

builder.prismaObjectField(Account, "runs", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Run, name: "RunConnection", description: "A page of runs." },
      { name: "RunEdge", description: "A run and its cursor." },
    ),
    nullable: true,
    description: `Runs, newest first: all of the account for a session or a key with the permission KEYS, else those that the calling key created. ${NEEDS_SECRET}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page: Page<SelectedRun> = await ctx.services.runs.list(ctx, toPageRequest(args, "runs"), connectionSelectionOf(ctx, info));
      return toConnection(page, "runs", createdPosition);
    },
  }),
);

const CreateRunInput = builder.inputType("CreateRunInput", {
  description: "Parameters of `createRun`.",
  fields: (t) => ({
    maxCost: t.field({
      type: "Credits",
      required: true,
      description: "The most that all calls of the run, and of the runs below it, may cost.",
    }),
    ttl: t.int({
      description: "Seconds until the run expires. Defaults to an hour, or to the calling key's expiry if that is earlier.",
    }),
    label: t.string({ description: "A name to find the run by." }),
    onLimit: t.field({ type: RunLimitAction, description: "The effect on a call at the limit. Defaults to REFUSE." }),
  }),
});

interface CreatedRunPayload {
  readonly run: SelectedRun;
  readonly key: string;
}

const CreateRunPayload = builder.objectRef<CreatedRunPayload>("CreateRunPayload").implement({
  description: "The result of `createRun`.",
  fields: (t) => ({
    run: t.field({ type: Run, description: "The new run.", resolve: ({ run }) => run }),
    key: t.exposeString("key", { description: "The key of the run. It is shown only once." }),
  }),
});

const PARAMS = { maxCost: "maxCost", ttl: "ttl" } as const;

builder.mutationField("createRun", (t) =>
  t.field({
    type: CreateRunPayload,
    nullable: true,
    description: `Creates a run. A key makes a run below itself, which draws on that key's budget too. ${NEEDS_SECRET}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateRunInput, required: true, description: "The run to create." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { runs } = ctx.services;
      const { id, key } = await runs.create(ctx, parsePermitted(ctx, requirePayer, createRunInput, input), PARAMS);
      return { key, run: await runs.get(ctx, id, selectionOf(ctx, info, ["run"])) };
    },
  }),
);

const RunPayload = builder.objectRef<{ readonly run: SelectedRun }>("RunPayload").implement({
  description: "The result of `endRun` and `approveRun`.",
  fields: (t) => ({ run: t.field({ type: Run, description: "The run after the change.", resolve: ({ run }) => run }) }),
});

builder.mutationField("endRun", (t) =>
  t.field({
    type: RunPayload,
    nullable: true,
    description: `Ends a run and all runs below it, with the calls under way, on all processes within a second. ${NEEDS_SECRET}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("EndRunInput", {
          description: "Parameters of `endRun`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the run." }) }),
        }),
        required: true,
        description: "The run to end.",
      }),
    },
    resolve: async (_root, { input }, ctx, info) => {
      const { runs } = ctx.services;
      const id = readId(input.id, "Run", "id");
      await runs.end(ctx, id);
      return { run: await runs.get(ctx, id, selectionOf(ctx, info, ["run"])) };
    },
  }),
);

const APPROVAL_PARAMS = { amount: "amount", idempotencyKey: "idempotencyKey" } as const;

builder.mutationField("approveRun", (t) =>
  t.field({
    type: RunPayload,
    nullable: true,
    description: `Raises the limit of a run, so that calls that wait for it go on. Not with the key of the run itself. ${NEEDS_SECRET}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("ApproveRunInput", {
          description: "Parameters of `approveRun`.",
          fields: (f) => ({
            id: f.id({ required: true, description: "The ID of the run." }),
            amount: f.field({ type: "Credits", required: true, description: "How many credits more the run may cost." }),
            idempotencyKey: f.string({
              description: "A text that you choose. An approval that is sent again with the same text within 24 hours adds nothing.",
            }),
          }),
        }),
        required: true,
        description: "The run and the amount.",
      }),
    },
    resolve: async (_root, { input: { id: given, ...changes } }, ctx, info) => {
      const { runs } = ctx.services;
      const { amount, idempotencyKey = null } = parsePermitted(ctx, requirePayer, approveRunInput, changes);
      const id = readId(given, "Run", "id");
      await runs.approve(ctx, id, { amount, idempotencyKey, params: APPROVAL_PARAMS });
      return { run: await runs.get(ctx, id, selectionOf(ctx, info, ["run"])) };
    },
  }),
);

builder.subscriptionField("runChanged", (t) =>
  t.field({
    type: Run,
    description: `The run as it is, and after each change of it or of a run below it: calls, holds, questions, ends. Rapid changes are combined. ${NEEDS_SECRET}`,
    args: { id: t.arg.id({ required: true, description: "The ID of the run." }) },
    subscribe: (_root, { id }, ctx) => cancellable(ctx, (live) => ctx.services.liveRuns.changes(live, readId(id, "Run", "id"))),
    resolve: ({ runId }, _args, ctx, info) => ctx.services.runs.get(ctx, runId, selectionOf(ctx, info)),
  }),
);
