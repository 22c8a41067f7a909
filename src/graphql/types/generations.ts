/** Generation jobs (docs/spec/generation.md#jobs): long media generations that continue without the caller's connection. */

import type { GraphQLResolveInfo } from "graphql";
import type { ErrorCode } from "../../errors.js";
import { errorOf, type JOB_STATUSES, type JobError, type JobResult, progressOf, statusOf } from "../../services/generation/jobs/job.js";
import type { SelectedJob } from "../../services/generation/jobs/rows.js";
import { type ImageJobInput, imageGenerationInput } from "../../services/generation/media/images-input.js";
import { musicInput } from "../../services/generation/media/speech.js";
import { type VideoAspectRatio, videoInput } from "../../services/generation/media/videos-input.js";
import { fromStoredReceipt } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable } from "../cancellable.js";
import type { GraphQLContext } from "../context.js";
import { MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText } from "../extra.js";
import { readId } from "../global-ids.js";
import { rowsBatchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, type PageArgs, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { PROVIDER_DESCRIPTION, ProviderInput, wishedInput } from "../wishes.js";
import { Account } from "./accounts.js";
import { ApiKey } from "./api-keys.js";
import { MusicInput, toWire } from "./audio-input.js";
import { oneImageFields, toImageBody } from "./images.js";
import { Modality, Model, SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";
import { apiKeyOf, UsageRecord } from "./usage.js";

const GenerationJobStatus = builder.enumType("GenerationJobStatus", {
  description:
    "The status of a job. Every status except RUNNING is final. A job is charged when it has SUCCEEDED, or when it was CANCELLED too late.",
  values: {
    RUNNING: { value: "running", description: "The job is running." },
    SUCCEEDED: { value: "succeeded", description: "The job was completed and charged. Its result can be fetched." },
    FAILED: { value: "failed", description: "The job failed. Nothing was charged." },
    CANCELLED: { value: "cancelled", description: "The job was cancelled. Work that the upstream had started is charged." },
  } satisfies Record<string, { value: (typeof JOB_STATUSES)[number]; description: string }>,
});

const GenerationResult = builder.objectRef<JobResult>("GenerationResult").implement({
  description: "The result file of a job.",
  fields: (t) => ({
    url: t.exposeString("url", { description: "The URL of the file, for keys that may read the job." }),
    contentType: t.exposeString("contentType", { description: "The media type of the file, such as `video/mp4`." }),
  }),
});

export const GenerationErrorCode = builder.enumType("GenerationErrorCode", {
  description: "The reason why a request or a job failed, the same codes as `extensions.code` of errors.",
  values: {
    BAD_REQUEST: { description: "The upstream rejected the request." },
    CONTENT_BLOCKED: { description: "A safety check of the gateway or of the upstream rejected the content." },
    UNAUTHORIZED: { description: "The caller's credentials were no longer valid." },
    INSUFFICIENT_BALANCE: { description: "The account's balance was too low." },
    KEY_BUDGET_EXHAUSTED: { description: "The key's budget was exhausted." },
    MAX_COST_EXCEEDED: { description: "The cost would have exceeded the request's limit." },
    FORBIDDEN: { description: "The caller lacked permission." },
    ACCOUNT_SUSPENDED: { description: "The account was suspended." },
    NOT_FOUND: { description: "A resource that the request refers to was not found." },
    METHOD_NOT_ALLOWED: { description: "The method is not supported there." },
    CONFLICT: { description: "The request conflicted with another one in progress." },
    PAYLOAD_TOO_LARGE: { description: "The request, or a file it refers to, was too large." },
    UNSUPPORTED_MEDIA_TYPE: { description: "The request, or a file it refers to, has an unsupported type." },
    MISDIRECTED_REQUEST: { description: "The request was sent to a host name that the gateway does not serve." },
    UPGRADE_REQUIRED: { description: "The request needs a WebSocket." },
    RATE_LIMITED: { description: "A rate limit was reached." },
    INTERNAL_ERROR: { description: "The gateway failed." },
    UPSTREAM_ERROR: { description: "The upstream failed." },
    SERVICE_UNAVAILABLE: { description: "The gateway was stopped, or could not accept the job." },
    UPSTREAM_TIMEOUT: { description: "The upstream timed out." },
  } satisfies Record<ErrorCode, { description: string }>,
});

const GenerationError = builder.objectRef<JobError>("GenerationError").implement({
  description: "The error of a failed job.",
  fields: (t) => ({
    code: t.expose("code", { type: GenerationErrorCode, description: "The error code." }),
    message: t.exposeString("message", { description: "The error message." }),
    details: t.field({
      type: "JSON",
      nullable: true,
      description:
        "The same as `extensions.details` of errors: `upstreamStatus`, `upstreamCode` and `retryAfterSeconds` of the upstream's refusal.",
      resolve: ({ details }) => details ?? null,
    }),
  }),
});

const usageRecordOf = rowsBatchedBy((ctx, ids, select) => ctx.services.usage.getMany(ctx, ids, select));
const jobOf = rowsBatchedBy((ctx, ids, select) => ctx.services.jobs.getMany(ctx, ids, select));

export const GenerationJob = builder.prismaObject("GenerationJob", {
  description:
    "A generation that runs as a job. It continues when its caller disconnects, and can be watched, cancelled and fetched later.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.jobs.getMany(ctx, ids, selectionOf(ctx, info, [], "GenerationJob"))),
  ),
  fields: (t) => ({
    modality: t.field({
      type: Modality,
      description: "The modality of the job.",
      select: { modality: true },
      resolve: ({ modality }) => modality,
    }),
    modelId: t.exposeID("model", { description: "The canonical ID of the requested model." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      select: { model: true },
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    apiKeyId: t.exposeID("apiKeyId", {
      nullable: true,
      description: "The REST ID of the key that started the job. Null when a session started it.",
    }),
    apiKey: t.field({
      type: ApiKey,
      nullable: true,
      description:
        "The key that started the job. Null when a session started it. Keys other than the calling one need a secret key with the permission KEYS.",
      select: { apiKeyId: true },
      resolve: ({ apiKeyId }, _args, ctx, info) => (apiKeyId === null ? null : apiKeyOf(ctx, apiKeyId, info)),
    }),
    status: t.field({ type: GenerationJobStatus, description: "The status of the job.", select: { status: true }, resolve: statusOf }),
    progress: t.int({
      description: "The progress in percent, as reported by the upstream. 100 when the job has succeeded.",
      select: { status: true, progress: true },
      resolve: progressOf,
    }),
    result: t.field({
      type: GenerationResult,
      nullable: true,
      description: "The result, when the job has succeeded.",
      select: { status: true, resultContentType: true },
      resolve: (row, _args, ctx) => ctx.services.jobs.resultOf(row),
    }),
    receipt: t.field({
      type: Receipt,
      nullable: true,
      description: "The receipt, when the job has succeeded, or was cancelled and charged.",
      select: { receipt: true },
      resolve: ({ receipt }) => (receipt === null ? null : fromStoredReceipt(receipt)),
    }),
    usageRecordId: t.id({
      nullable: true,
      description: "The REST ID of the usage record, equal to that of the job. Null when it has not been charged.",
      select: { receipt: true },
      resolve: ({ id, receipt }) => (receipt === null ? null : id),
    }),
    usageRecord: t.field({
      type: UsageRecord,
      nullable: true,
      description: "The usage record. Null when the job has not been charged. Permission USAGE.",
      select: { receipt: true },
      resolve: ({ id, receipt }, _args, ctx, info) => (receipt === null ? null : usageRecordOf(ctx, id, info)),
    }),
    error: t.field({
      type: GenerationError,
      nullable: true,
      description: "The error, when the job has failed.",
      select: { errorCode: true, errorMessage: true, request: true },
      resolve: errorOf,
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the job was started." }),
    finishedAt: t.expose("finishedAt", { type: "DateTime", nullable: true, description: "When the job ended. Null while it is running." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When the job and its result are deleted." }),
  }),
});

builder.prismaObjectField(UsageRecord, "job", (t) =>
  t.field({
    type: GenerationJob,
    nullable: true,
    description: "The job of this usage record. Null when it was not a job, or the job has expired.",
    resolve: ({ id }, _args, ctx, info) => jobOf(ctx, id, info),
  }),
);

function jobPayload(name: string, description: string) {
  return builder.objectRef<{ readonly job: SelectedJob }>(name).implement({
    description,
    fields: (t) => ({ job: t.field({ type: GenerationJob, description: "The job in its current state.", resolve: ({ job }) => job }) }),
  });
}

async function toPayload(ctx: GraphQLContext, info: GraphQLResolveInfo, { id }: { readonly id: string }) {
  return { job: await ctx.services.jobs.getSelected(ctx, id, selectionOf(ctx, info, ["job"])) };
}

const VideoAspectRatioEnum = builder.enumType("VideoAspectRatio", {
  description: "The aspect ratio of a video.",
  values: {
    LANDSCAPE: { value: "16:9", description: "16 to 9." },
    PORTRAIT: { value: "9:16", description: "9 to 16." },
  } satisfies Record<string, { value: VideoAspectRatio; description: string }>,
});

const StartVideoInput = builder.inputType("StartVideoInput", {
  description: "Parameters of `startVideo`.",
  fields: (t) => ({
    prompt: t.string({ required: true, description: "A description of the video." }),
    model: t.string({ description: "A model ID or alias. Defaults to the default video model." }),
    duration: t.int({ description: "The length in seconds, 1 to 10. Defaults to the model's own length, with a hold for 10 seconds." }),
    width: t.int({ description: "The width in pixels, 64 to 4096." }),
    height: t.int({ description: "The height in pixels, 64 to 4096." }),
    aspectRatio: t.field({ type: VideoAspectRatioEnum, description: "The aspect ratio. When omitted, the size or the model decides." }),
    hasAudio: t.boolean({ defaultValue: false, description: "Whether the video has sound.", extensions: { wireName: "audio" } }),
    seed: t.int({ description: "The random seed. -1 draws a random one. Some models ignore it." }),
    negativePrompt: t.string({ description: "A description of unwanted content. Some models ignore it." }),
    images: t.stringList({ description: "The http or https URLs of reference images.", extensions: { wireName: "image" } }),
    isEnhanced: t.boolean({
      defaultValue: false,
      description: "Whether the default text model improves the prompt first, charged as a chat.",
      extensions: { wireName: "enhance" },
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
  }),
});

builder.mutationField("startVideo", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartVideoPayload", "A video generation that has started."),
    nullable: true,
    description:
      "Starts a video generation. It is admitted and its hold is placed before the mutation returns. It is charged when the video is complete.",
    args: { input: t.arg({ type: StartVideoInput, required: true, description: "The video to generate." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { negativePrompt, images, hasAudio, isEnhanced, safe, maxCost: _, provider: __, ...same } = input;
      const fields = { negative_prompt: negativePrompt, image: images, audio: hasAudio, enhance: isEnhanced, safe: toSafeText(safe) };
      const wished = await wishedInput(ctx, input, videoInput, () => ({ ...same, ...fields }));
      return toPayload(ctx, info, await ctx.services.videos.start(wished.ctx, wished.input));
    },
  }),
);

builder.mutationField("startMusic", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartMusicPayload", "A music generation that has started."),
    nullable: true,
    description: "Starts a music generation as a job, for pieces that take longer than a connection lasts. Otherwise like `generateMusic`.",
    args: { input: t.arg({ type: MusicInput, required: true, description: "The music to generate." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const wished = await wishedInput(ctx, input, musicInput, () => toWire(input));
      return toPayload(ctx, info, await ctx.services.music.start(wished.ctx, wished.input));
    },
  }),
);

const StartImageInput = builder.inputType("StartImageInput", {
  description: "Parameters of `startImage`.",
  fields: oneImageFields,
});

builder.mutationField("startImage", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("StartImagePayload", "An image generation that has started."),
    nullable: true,
    description:
      "Starts the generation of one image as a job, for models that take longer than a connection lasts. Otherwise like `generateImage`.",
    args: { input: t.arg({ type: StartImageInput, required: true, description: "The image to generate." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const wished = await wishedInput(ctx, input, imageGenerationInput, () => toImageBody(input, ["n", "response_format"]));
      return toPayload(ctx, info, await ctx.services.images.start(wished.ctx, wished.input as ImageJobInput));
    },
  }),
);

const CancelGenerationInput = builder.inputType("CancelGenerationInput", {
  description: "Parameters of `cancelGeneration`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the job." }) }),
});

builder.mutationField("cancelGeneration", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: jobPayload("CancelGenerationPayload", "The result of `cancelGeneration`. The job is not cancelled when it was too late."),
    nullable: true,
    description:
      "Cancels a job and discards its result. Work that the upstream has started is finished and charged; the receipt shows the cost. A job that has finished, or whose answer has arrived and is being charged, does not change.",
    args: { input: t.arg({ type: CancelGenerationInput, required: true, description: "The job to cancel." }) },
    resolve: async (_root, { input }, ctx, info) =>
      toPayload(ctx, info, await ctx.services.jobs.cancel(ctx, readId(input.id, "GenerationJob", "id"))),
  }),
);

function findJob(ctx: GraphQLContext, info: GraphQLResolveInfo, id: string): Promise<SelectedJob> {
  return ctx.services.jobs.getSelected(ctx, readId(id, "GenerationJob", "id"), selectionOf(ctx, info));
}

builder.queryField("generationJob", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerationJob,
    nullable: true,
    description: "A job of the account. A publishable key can read only the jobs that it started.",
    args: { id: t.arg.id({ required: true, description: "The ID of the job." }) },
    resolve: (_root, { id }, ctx, info) => findJob(ctx, info, id),
  }),
);

const GenerationJobConnection = builder.connectionObject(
  { type: GenerationJob, name: "GenerationJobConnection", description: "A page of generation jobs." },
  { name: "GenerationJobEdge", description: "A generation job and its cursor." },
);

async function listJobs(ctx: GraphQLContext, info: GraphQLResolveInfo, accountId: string, args: PageArgs) {
  ctx.services.accounts.assertOwn(ctx, accountId);
  const page = await ctx.services.jobs.listSelected(ctx, toPageRequest(args, "jobs"), connectionSelectionOf(ctx, info));
  return toConnection(page, "jobs", createdPosition);
}

builder.prismaObjectField(Account, "jobs", (t) =>
  t.field({
    type: GenerationJobConnection,
    nullable: true,
    description: "The account's jobs of the last 24 hours, newest first. Permission USAGE.",
    args: pageArgs,
    complexity: pageCost,
    resolve: ({ id }, args, ctx, info) => listJobs(ctx, info, id, args),
  }),
);

builder.subscriptionField("generationProgress", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerationJob,
    description: "The state of a job now, and at each change until it is finished. Unsubscribing does not stop the job.",
    args: { id: t.arg.id({ required: true, description: "The ID of the job." }) },
    subscribe: (_root, { id }, ctx, info) => {
      const jobId = readId(id, "GenerationJob", "id");
      const selection = selectionOf(ctx, info);
      return cancellable(ctx, (live) => ctx.services.jobs.watch(live, jobId, selection));
    },
    resolve: (job, _args, ctx, info) => {
      selectionOf(ctx, info);
      return job;
    },
  }),
);
