/** Files of the media host (docs/spec/media.md#content-addressed-files): what POST {media_url}/upload does. */
import { MEDIA_UPLOAD_BYTES_MAX } from "../../services/files/limits.js";
import type { UploadedMedia } from "../../services/files/media-links.js";
import { builder } from "../builder.js";

const UploadMediaInput = builder.inputType("UploadMediaInput", {
  fields: (t) => ({
    file: t.field({
      type: "File",
      required: true,
      description: `At most ${MEDIA_UPLOAD_BYTES_MAX / 1024 / 1024} MiB; kept for 14 days after its last upload.`,
    }),
    strip: t.boolean({
      required: false,
      defaultValue: false,
      description: "Without the metadata of a JPEG, PNG, WebP or GIF picture, such as where it was taken.",
    }),
  }),
});

const UploadMediaPayload = builder.objectRef<UploadedMedia>("UploadMediaPayload").implement({
  description: "A stored file. Anybody who knows its address may read it.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The first 16 hexadecimal digits of the SHA-256." }),
    url: t.exposeString("url"),
    contentType: t.exposeString("contentType", {
      description: "As it was declared, as far as the bytes agree. Pages and scripts are served as application/octet-stream.",
    }),
    size: t.exposeInt("size", { description: "Bytes." }),
    duplicate: t.exposeBoolean("duplicate", { description: "The same bytes were there already." }),
  }),
});

builder.mutationField("uploadMedia", (t) =>
  t.field({
    type: UploadMediaPayload,
    nullable: true,
    description: "Stores a file under its content; uploading it again begins its time anew.",
    args: { input: t.arg({ type: UploadMediaInput, required: true }) },
    resolve: (_root, { input: { file, strip } }, ctx) => {
      const { bytes, contentType, name } = file;
      const about = { field: "file", contentType: contentType || null, name: name || null, strip: strip ?? false };
      return ctx.services.mediaLinks.uploadBytes(ctx, bytes, about);
    },
  }),
);
