/** GET /audio/{text} (docs/spec/audio.md#get-audio): speech or music, depending on the model, with the content cache. */
import type { RequestContext } from "../../../context.js";
import { SPEECH_CONTENT_TYPES } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Model } from "../../catalog/model.js";
import { parseInput } from "../../requests/input.js";
import type { CacheableAnswer, CacheQuery, ContentCache, PreparedAnswer } from "../content-cache/content-cache.js";
import { resolveRequested } from "../requested-model.js";
import type { Music } from "./music.js";
import { type AudioQuery, audioPath, chooseVoice, musicInput, type Speech, speechInput } from "./speech.js";

export interface AudioDependencies {
  readonly catalog: Catalog;
  readonly contentCache: ContentCache;
  readonly speech: Speech;
  readonly music: Music;
}

type Prepared = Pick<CacheQuery, "operation" | "model" | "parameters"> & {
  readonly create: (ctx: RequestContext) => Promise<CacheableAnswer>;
};

export class AudioGeneration {
  constructor(private readonly deps: AudioDependencies) {}

  ask(ctx: RequestContext, text: string, query: AudioQuery): PreparedAnswer {
    const { operation, model, parameters, create } = this.prepare(ctx, text, query);
    const contentType = SPEECH_CONTENT_TYPES[query.response_format ?? "mp3"];
    return this.deps.contentCache.ask(ctx, { operation, model, parameters, noCache: query["no-cache"] }, contentType, create);
  }

  private prepare(ctx: RequestContext, path: string, query: AudioQuery): Prepared {
    const { catalog } = this.deps;
    const caller = requireCaller(ctx);
    const { text } = parseInput(audioPath, { text: path });
    const isMusic = query.model !== undefined && catalog.findFor(caller, query.model)?.modality === "music";
    const model = resolveRequested(ctx, catalog, query.model, isMusic ? "music" : "speech", ["speech", "music"]);
    return isMusic ? this.prepareMusic(model, text, query) : this.prepareSpeech(model, text, query);
  }

  private prepareSpeech(model: Model, text: string, query: AudioQuery): Prepared {
    const { response_format = "mp3", speed, instructions, safe, seed } = query;
    const voice = chooseVoice(model, query.voice);
    const input = parseInput(speechInput, { model: model.id, input: text, voice, response_format, speed, instructions, safe });
    const parameters = { text, voice, response_format, speed: speed ?? null, instructions: instructions ?? null, safe: safe ?? null, seed };
    const notes = useless(query, ["duration"], "speech");
    return { operation: "audio", model, parameters, create: (ctx) => this.deps.speech.create(ctx, input, { notes }) };
  }

  private prepareMusic(model: Model, text: string, query: AudioQuery): Prepared {
    const { response_format = "mp3", duration, safe, seed } = query;
    const input = parseInput(musicInput, { model: model.id, prompt: text, duration, response_format, seed, safe });
    const parameters = { text, response_format, duration: duration ?? null, safe: safe ?? null, seed };
    const notes = useless(query, ["voice", "speed", "instructions"], "music");
    return { operation: "audio", model, parameters, create: (ctx) => this.deps.music.generate(ctx, input, notes) };
  }
}

function useless(query: AudioQuery, names: readonly (keyof AudioQuery)[], of: string): string[] {
  return names.filter((name) => query[name] !== undefined).map((name) => `${name}: has no effect on ${of}.`);
}
