/** Variables of the object store. */
import * as z from "zod";
import type { S3Settings } from "../lib/settings.js";
import { httpUrl } from "./values.js";

export const s3Environment = {
  S3_ENDPOINT: httpUrl().optional(),
  S3_REGION: z.string().default("us-east-1"),
  S3_BUCKET: z.string().optional(),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
};

type Values = z.output<z.ZodObject<typeof s3Environment>>;

/** Null: not configured. */
export function toS3(values: Values): S3Settings | null {
  const { S3_BUCKET: bucket, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = values;
  if (bucket === undefined) return null;
  const credentials = accessKeyId !== undefined && secretAccessKey !== undefined ? { accessKeyId, secretAccessKey } : null;
  return { bucket, endpoint: values.S3_ENDPOINT ?? null, region: values.S3_REGION, credentials };
}
