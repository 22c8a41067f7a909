/** What a transcription is asked with (docs/spec/audio.md#transcriptions): as GraphQL states it, and as the texts of a form. */
import * as z from "zod";
import { queryFlag, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN } from "../../safety/features.js";

export const TRANSCRIPT_FORMATS = ["json", "text", "verbose_json", "srt", "vtt"] as const;
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];
export const TIMESTAMP_GRANULARITIES = ["segment", "word"] as const;

const temperature = z.number().min(0).max(1);

const fields = {
  model: z.string().min(1).max(253).nullish(),
  /** ISO 639-1; longer tags such as `pt-BR` are left to the upstream. */
  language: z
    .string()
    .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/, "must be a tag such as en or pt-BR")
    .nullish(),
  prompt: z.string().nullish(),
  temperature: temperature.nullish(),
  response_format: z.enum(TRANSCRIPT_FORMATS).nullish(),
  timestamp_granularities: z.array(z.enum(TIMESTAMP_GRANULARITIES)).max(TIMESTAMP_GRANULARITIES.length).nullish(),
  safe: z.string().meta({ pattern: SAFE_PATTERN }).nullish(),
};

type Stated = Pick<z.output<z.ZodObject<typeof fields>>, "response_format" | "timestamp_granularities">;

const areTimesShown = (input: Stated) => !input.timestamp_granularities?.length || input.response_format === "verbose_json";
const TIMES_ARE_SHOWN = { message: "needs response_format verbose_json", path: ["timestamp_granularities"] };

/** What is not named here travels on to the upstream untouched. */
export const transcriptionInput = z.looseObject(fields).refine(areTimesShown, TIMES_ARE_SHOWN);
export type TranscriptionInput = z.output<typeof transcriptionInput>;

/** POST /v1/audio/transcriptions, beside the file. */
export const transcriptionForm = z
  .looseObject({ ...fields, temperature: queryNumber(temperature).optional(), stream: queryFlag.default(false) })
  .refine(areTimesShown, TIMES_ARE_SHOWN)
  .refine(({ stream, response_format }) => !stream || (response_format ?? "json") === "json", {
    message: "needs response_format json",
    path: ["stream"],
  });
