/**
 * Files of the media host: what POST {media_url}/upload does (docs/spec/media.md#content-addressed-files), how they are read, listed and
 * deleted, and uploads straight to the blob store (docs/spec/media.md#direct-uploads).
 */

import { parsePermitted, requireAccount } from "../../services/access/permissions.js";
import { MEDIA_OBJECT_BYTES_MAX, MEDIA_TAGS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../../services/files/limits.js";
import { isMediaFileId, type StoredMedia } from "../../services/files/media-links.js";
import { kindOf, type MediaKind, type MediaOrder, mediaCursors, mediaPosition, toNewestQuery } from "../../services/files/media-lists.js";
import type { CreatedUpload, SelectedMediaObject } from "../../services/files/media-objects.js";
import { createUploadInput } from "../../services/files/media-objects-input.js";
import type { MediaQuota as Quota } from "../../services/files/media-quotas.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, OrderDirection, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const MEDIA_TYPES = ["MediaFile", "MediaObject"] as const;

const MediaKindEnum = builder.enumType("MediaKind", {
  description: "What a file is, by its media type.",
  values: describedValues<MediaKind>({
    image: "A picture.",
    video: "A video.",
    audio: "Sound.",
    text: "Text.",
    other: "Anything else: PDF and JSON are among it.",
  }),
});

/** What is said of a file, whichever it is. */
const SAID = {
  url: "Where anybody fetches it.",
  contentType:
    "Its media type, as far as its bytes agree with what it was declared to be. Pages and scripts are served as application/octet-stream.",
  kind: "What it is, by its media type.",
  size: "Its length in bytes.",
  name: "What it is saved as. Null: it has no name.",
  createdAt: "When it was stored.",
  expiresAt: "When it is removed. Null: it is kept until it is deleted.",
};

const Media = builder.interfaceRef<{ readonly id: string }>("Media").implement({
  description: "A stored file. Anybody who knows its address may read it.",
  interfaces: [Node],
  fields: (t) => ({
    url: t.string({ description: SAID.url }),
    contentType: t.string({ description: SAID.contentType }),
    kind: t.field({ type: MediaKindEnum, description: SAID.kind }),
    size: t.int({ description: SAID.size }),
    name: t.string({ nullable: true, description: SAID.name }),
    createdAt: t.field({ type: "DateTime", description: SAID.createdAt }),
    expiresAt: t.field({ type: "DateTime", nullable: true, description: SAID.expiresAt }),
  }),
  resolveType: ({ id }) => (isMediaFileId(id) ? "MediaFile" : "MediaObject"),
});

const MediaFile = builder.objectRef<StoredMedia>("MediaFile").implement({
  description: "A file that is known by its content: its REST id is the first 16 hexadecimal digits of the SHA-256.",
  interfaces: [Node, Media],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.mediaLinks.getMany(ids))),
  fields: (t) => ({
    url: t.string({ description: SAID.url, resolve: ({ id }, _args, ctx) => ctx.services.media.urlOf(id) }),
    contentType: t.exposeString("contentType", { description: SAID.contentType }),
    kind: t.field({ type: MediaKindEnum, description: SAID.kind, resolve: ({ contentType }) => kindOf(contentType) }),
    size: t.exposeInt("sizeBytes", { description: SAID.size }),
    name: t.exposeString("name", { nullable: true, description: SAID.name }),
    sha256: t.exposeString("sha256", { description: "The SHA-256 of its bytes, in hexadecimal." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When these bytes were first brought." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "When it is removed, unless it is brought again." }),
  }),
});

const MediaObject = builder.prismaObject("MediaObject", {
  description: "A file that its owner sent straight to the blob store. It is kept for 14 days when it has no tag.",
  interfaces: [Node, Media],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.mediaObjects.getMany(ids, selectionOf(ctx, info, [], "MediaObject"))),
  ),
  fields: (t) => ({
    url: t.string({ description: SAID.url, resolve: ({ id }, _args, ctx) => ctx.services.media.urlOf(id) }),
    contentType: t.exposeString("contentType", { description: SAID.contentType }),
    kind: t.field({
      type: MediaKindEnum,
      description: SAID.kind,
      select: { contentType: true },
      resolve: ({ contentType }) => kindOf(contentType),
    }),
    size: t.exposeInt("sizeBytes", { description: SAID.size }),
    name: t.exposeString("name", { nullable: true, description: SAID.name }),
    tags: t.exposeStringList("tags", { description: "It is listed in the public gallery under each of them." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was complete." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", nullable: true, description: SAID.expiresAt }),
  }),
});

builder.queryField("media", (t) =>
  t.field({
    type: Media,
    nullable: true,
    description: "A stored file. Open to all.",
    args: { id: t.arg.id({ required: true, description: "Which file." }) },
    resolve: (_root, { id }, ctx, info) =>
      ctx.services.media.getSelected(readId(id, MEDIA_TYPES, "id"), selectionOf(ctx, info, [], "MediaObject")),
  }),
);

const MediaFilter = builder.inputType("MediaFilter", {
  description: "Which files are meant: those that are all of this. What is left out lets every file through.",
  fields: (t) => ({
    kinds: t.field({ type: [MediaKindEnum], description: "One of these." }),
    contentTypes: t.stringList({ description: "Of one of these media types, such as `image/png`; at most 20." }),
    tags: t.stringList({ description: `With all of these tags; at most ${MEDIA_TAGS_MAX}.` }),
  }),
});

const MediaOrderField = builder.enumType("MediaOrderField", {
  description: "What files are sorted by.",
  values: describedValues<MediaOrder["field"]>({
    created_at: "When they were complete.",
    size: "Their length in bytes.",
    name: "What they are saved as. Those without a name count as the last of the alphabet.",
  }),
});

const MediaOrderInput = builder.inputType("MediaOrder", {
  description: "How files are sorted.",
  fields: (t) => ({
    field: t.field({ type: MediaOrderField, required: true, defaultValue: "created_at", description: "What by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "Which end first." }),
  }),
});

const MediaObjectConnection = builder.connectionObject(
  { type: MediaObject, name: "MediaObjectConnection", description: "Stored files, page by page." },
  { name: "MediaObjectEdge", description: "A stored file, and its place in the list." },
);

builder.prismaObjectField(Account, "media", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "The account's tagged files. Any key may ask.",
    args: {
      ...pageArgs,
      filter: t.arg({ type: MediaFilter, description: "Which of them." }),
      orderBy: t.arg({
        type: MediaOrderInput,
        required: true,
        defaultValue: { field: "created_at", direction: "desc" },
        description: "In which order.",
      }),
    },
    complexity: pageCost,
    resolve: async ({ id }, { filter, orderBy, ...args }, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const [list, cursors] = [`media.${orderBy.field}.${orderBy.direction}`, mediaCursors(orderBy)];
      const query = { filter: filter ?? {}, orderBy, page: toPageRequest(args, list, cursors) };
      const page = await ctx.services.mediaObjects.listSelected(ctx, query, connectionSelectionOf(ctx, info));
      return toConnection(page, list, (row) => mediaPosition(row, orderBy), cursors);
    },
  }),
);

builder.queryField("myMedia", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "The account's tagged files, newest first. Any key may ask.",
    deprecationReason: "Use `me { media }`.",
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_root, args, ctx, info) => {
      const query = toNewestQuery(toPageRequest(args, "media"));
      const page = await ctx.services.mediaObjects.listSelected(ctx, query, connectionSelectionOf(ctx, info));
      return toConnection(page, "media", createdPosition);
    },
  }),
);

builder.queryField("publicMedia", (t) =>
  t.field({
    type: MediaObjectConnection,
    nullable: true,
    description: "Everybody's files with a tag, newest first. Open to all.",
    args: { ...pageArgs, tag: t.arg.string({ required: true, description: "The tag, in any case." }) },
    complexity: pageCost,
    resolve: async (_root, { tag, ...args }, ctx, info) => {
      const page = await ctx.services.mediaObjects.listTaggedSelected(tag, toPageRequest(args, "media"), connectionSelectionOf(ctx, info));
      return toConnection(page, "media", createdPosition);
    },
  }),
);

const UploadMediaInput = builder.inputType("UploadMediaInput", {
  description: "The file to be stored.",
  fields: (t) => ({
    file: t.field({
      type: "File",
      required: true,
      description: `At most ${MEDIA_UPLOAD_BYTES_MAX / 1024 / 1024} MiB; kept for 14 days after its last upload.`,
    }),
    isStripped: t.boolean({
      defaultValue: false,
      description: "Without the metadata of a JPEG, PNG, WebP or GIF picture, such as where it was taken.",
      extensions: { wireName: "strip" },
    }),
  }),
});

interface UploadedMediaFile {
  readonly mediaFile: StoredMedia;
  readonly isDuplicate: boolean;
}

const UploadMediaPayload = builder.objectRef<UploadedMediaFile>("UploadMediaPayload").implement({
  description: "A file that is stored.",
  fields: (t) => ({
    mediaFile: t.field({ type: MediaFile, description: "The file.", resolve: ({ mediaFile }) => mediaFile }),
    isDuplicate: t.exposeBoolean("isDuplicate", { description: "The same bytes were there already." }),
  }),
});

builder.mutationField("uploadMedia", (t) =>
  t.field({
    type: UploadMediaPayload,
    nullable: true,
    description: "Stores a file under its content; uploading it again begins its time anew.",
    args: { input: t.arg({ type: UploadMediaInput, required: true, description: "The file to be stored." }) },
    resolve: async (_root, { input: { file, isStripped } }, ctx) => {
      const { bytes, contentType, name } = file;
      const about = { field: "file", contentType: contentType || null, name: name || null, strip: isStripped ?? false };
      const { id, duplicate } = await ctx.services.mediaLinks.uploadBytes(ctx, bytes, about);
      return { mediaFile: await ctx.services.mediaLinks.get(id), isDuplicate: duplicate };
    },
  }),
);

const CreateUploadInput = builder.inputType("CreateUploadInput", {
  description: "The file that will be sent.",
  fields: (t) => ({
    contentType: t.string({
      required: true,
      description:
        "What it is, as its bytes will say. What is no picture, sound, video, PDF or text is stored as application/octet-stream, and pages and scripts are served as that.",
    }),
    size: t.int({ required: true, description: `Its length in bytes: 1 to ${MEDIA_OBJECT_BYTES_MAX}.` }),
    name: t.string({ description: "What it is saved as." }),
    tags: t.stringList({ description: `At most ${MEDIA_TAGS_MAX}. A file with a tag is in the public gallery.` }),
  }),
});

const UploadHeader = builder.objectRef<readonly [string, string]>("UploadHeader").implement({
  description: "A header that must be sent with a file.",
  fields: (t) => ({
    name: t.string({ description: "Its name.", resolve: ([name]) => name }),
    value: t.string({ description: "Its value, to be sent as it is.", resolve: ([, value]) => value }),
  }),
});

const Upload = builder.objectRef<CreatedUpload>("Upload").implement({
  description: "Where a file is to be sent. It can be read once `completeUpload` has found it to be what was announced.",
  fields: (t) => ({
    mediaObjectId: t.exposeID("id", { description: "The REST id that the file will have. `completeUpload` takes it." }),
    url: t.exposeString("uploadUrl", { description: "Takes this one file, without a key." }),
    method: t.exposeString("method", { description: "The HTTP method to send it with: `PUT`." }),
    headers: t.field({
      type: [UploadHeader],
      description: "Must be sent with the file, all of them, as they are.",
      resolve: ({ headers }) => Object.entries(headers),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Until when sending may begin." }),
  }),
});

const CreateUploadPayload = builder.objectRef<{ readonly upload: CreatedUpload }>("CreateUploadPayload").implement({
  description: "An upload that can begin.",
  fields: (t) => ({ upload: t.field({ type: Upload, description: "Where the file is to be sent.", resolve: ({ upload }) => upload }) }),
});

builder.mutationField("createUpload", (t) =>
  t.field({
    type: CreateUploadPayload,
    nullable: true,
    description: "Asks for an address to send a file to. It counts towards the quota from now on. Any key may ask.",
    args: { input: t.arg({ type: CreateUploadInput, required: true, description: "The file that will be sent." }) },
    resolve: async (_root, { input }, ctx) => ({
      upload: await ctx.services.mediaObjects.createUpload(ctx, parsePermitted(ctx, requireAccount, createUploadInput, input)),
    }),
  }),
);

const CompleteUploadInput = builder.inputType("CompleteUploadInput", {
  description: "The upload that is complete.",
  fields: (t) => ({ id: t.id({ required: true, description: "The id that the file was given by `createUpload`." }) }),
});

const CompleteUploadPayload = builder.objectRef<{ readonly mediaObject: SelectedMediaObject }>("CompleteUploadPayload").implement({
  description: "A file that can be read.",
  fields: (t) => ({ mediaObject: t.field({ type: MediaObject, description: "The file.", resolve: ({ mediaObject }) => mediaObject }) }),
});

builder.mutationField("completeUpload", (t) =>
  t.field({
    type: CompleteUploadPayload,
    nullable: true,
    description: "Makes a file that has been sent one that can be read. Repeating it changes nothing.",
    args: { input: t.arg({ type: CompleteUploadInput, required: true, description: "The upload that is complete." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { mediaObjects } = ctx.services;
      const { id } = await mediaObjects.complete(ctx, readId(input.id, "MediaObject", "id"));
      return { mediaObject: await mediaObjects.getSelected(id, selectionOf(ctx, info, ["mediaObject"])) };
    },
  }),
);

const DeleteMediaInput = builder.inputType("DeleteMediaInput", {
  description: "The file to be deleted.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which file." }) }),
});

const DeleteMediaPayload = builder.objectRef<{ readonly id: string }>("DeleteMediaPayload").implement({
  description: "A file that is no more.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The id that REST showed." }) }),
});

builder.mutationField("deleteMedia", (t) =>
  t.field({
    type: DeleteMediaPayload,
    nullable: true,
    description: "Deletes a tagged file of the account. Needs a secret key.",
    args: { input: t.arg({ type: DeleteMediaInput, required: true, description: "The file to be deleted." }) },
    resolve: (_root, { input }, ctx) => ctx.services.mediaObjects.delete(ctx, readId(input.id, MEDIA_TYPES, "id")),
  }),
);

const MediaQuota = builder.objectRef<Quota>("MediaQuota").implement({
  description: "What the account keeps on the media host, uploads that are under way included.",
  fields: (t) => ({
    usedBytes: t.exposeFloat("usedBytes", { description: "The bytes of all of it: a whole number." }),
    limitBytes: t.exposeFloat("limitBytes", { description: "The bytes that it may keep: a whole number." }),
    files: t.exposeInt("files", { description: "How many files there are." }),
    limitFiles: t.exposeInt("limitFiles", { description: "How many files it may keep." }),
  }),
});

builder.prismaObjectField(Account, "mediaQuota", (t) =>
  t.field({
    type: MediaQuota,
    nullable: true,
    description: "What the account keeps on the media host, and may keep. Any key may ask.",
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.mediaQuotas.get(ctx);
    },
  }),
);
