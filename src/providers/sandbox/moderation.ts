/** The sandbox's moderation model: word lists with scores in OpenAI's categories (docs/sandbox-models.md). */
import { setImmediate as nextTurn } from "node:timers/promises";
import { countTexts } from "../../lib/tokenizer.js";
import type { ModerationAnswer, ModerationCall, ModerationInput, ModerationProvider, ModerationResult } from "../media.js";
import type { UpstreamTimeouts } from "../provider.js";
import { begin, reportTokens } from "./media/calls.js";
import { refuse } from "./refusal.js";

/** OpenAI's categories, and two for the safety feature `shield`. */
export const MODERATION_CATEGORIES = [
  "harassment",
  "harassment/threatening",
  "hate",
  "hate/threatening",
  "illicit",
  "illicit/violent",
  "self-harm",
  "self-harm/intent",
  "self-harm/instructions",
  "sexual",
  "sexual/minors",
  "violence",
  "violence/graphic",
  "prompt_injection",
  "jailbreak",
] as const;
type Category = (typeof MODERATION_CATEGORIES)[number];

const FLAGGED_FROM = 0.5;
/** The score of a category without findings. */
const SCORE_NONE = 0.0001;
const SCORE_MAX = 0.99;
/** A text is read in parts, which overlap by more than the longest rule. */
const PART_CHARS = 32_768;
const OVERLAP_CHARS = 256;

type Rule = readonly [category: Category, words: RegExp, score: number];

/** Scores of several findings combine like probabilities: two of 0.4 are flagged, one is not. */
const RULES: readonly Rule[] = [
  ["harassment", /\b(?:idiots?|morons?|stupid|losers?|worthless|pathetic|shut up)\b/gi, 0.4],
  ["harassment", /\byou(?:'re| are) (?:an? )?(?:idiot|moron|stupid|loser|worthless|pathetic|disgusting)\b/gi, 0.5],
  [
    "harassment/threatening",
    /\bi(?:'ll| will| am going to|'m going to) (?:hurt|kill|find|beat|destroy|stab|shoot) (?:you|him|her|them)\b/gi,
    0.85,
  ],
  [
    "hate",
    /\b(?:i hate|death to|get rid of) (?:all )?(?:immigrants|foreigners|women|men|gays|jews|muslims|christians|blacks|whites|refugees)\b/gi,
    0.9,
  ],
  ["hate", /\b(?:subhumans?|vermin|inferior race)\b/gi, 0.6],
  [
    "hate/threatening",
    /\b(?:kill|exterminate|gas|lynch) (?:all )?(?:the )?(?:immigrants|foreigners|gays|jews|muslims|christians|blacks|whites|refugees)\b/gi,
    0.95,
  ],
  ["illicit", /\bhow (?:to|do i|can i) (?:make|cook|buy|sell|steal|forge|hack|launder|smuggle|pick a lock)\b/gi, 0.35],
  [
    "illicit",
    /\b(?:meth(?:amphetamine)?|cocaine|heroin|counterfeit|stolen credit cards?|shoplift\w*|launder(?:ing)? money|ransomware|hack(?:ing)? into)\b/gi,
    0.4,
  ],
  ["illicit/violent", /\b(?:build|make|making|buy) (?:an? )?(?:\w+ )?(?:bombs?|explosives?|grenades?|silencers?|ghost guns?)\b/gi, 0.85],
  ["self-harm", /\b(?:suicide|suicidal|self-?harm|cut(?:ting)? myself|overdose)\b/gi, 0.6],
  ["self-harm/intent", /\bi (?:want|am going|plan) to (?:die|kill myself|end my life|hurt myself|cut myself)\b/gi, 0.9],
  ["self-harm/instructions", /\bhow (?:to|do i|can i) (?:kill myself|commit suicide|end my life|cut myself|overdose)\b/gi, 0.9],
  ["sexual", /\b(?:porn\w*|erotic\w*|nudes?|naked|sex(?:ual|ually|y)?|orgasms?|genitals?|nsfw)\b/gi, 0.55],
  [
    "sexual/minors",
    /\b(?:child|children|minors?|underage|teen(?:age)?)\b[^.!?\n]{0,60}\b(?:porn\w*|nudes?|naked|sex(?:ual|ually|y)?|erotic\w*)\b/gi,
    0.95,
  ],
  [
    "sexual/minors",
    /\b(?:porn\w*|nudes?|naked|sex(?:ual|ually|y)?|erotic\w*)\b[^.!?\n]{0,60}\b(?:child|children|minors?|underage)\b/gi,
    0.95,
  ],
  [
    "violence",
    /\b(?:kill(?:s|ed|ing)?|murder\w*|stab(?:s|bed|bing)?|shoot(?:s|ing)?|tortur\w+|massacre\w*|behead\w*|strangl\w+|bomb(?:s|ed|ing)?)\b/gi,
    0.55,
  ],
  [
    "violence/graphic",
    /\b(?:gore|gory|entrails|dismember\w*|mutilat\w*|disembowel\w*|blood (?:everywhere|splattered|gushing)|severed (?:head|limb|arm|leg)s?)\b/gi,
    0.75,
  ],
  [
    "prompt_injection",
    /\b(?:ignore|disregard|forget) (?:all |any )?(?:of )?(?:the |your |my )?(?:previous|prior|above|earlier|system) (?:instructions?|prompts?|rules?|messages?)\b/gi,
    0.95,
  ],
  [
    "prompt_injection",
    /\b(?:reveal|print|show|repeat|output) (?:me )?(?:your |the )?(?:system|hidden|initial) (?:prompt|instructions?|message)\b/gi,
    0.85,
  ],
  [
    "jailbreak",
    /\b(?:do anything now|developer mode enabled|you are (?:now )?dan|without any (?:restrictions|filters|rules)|jailbreak)\b/gi,
    0.8,
  ],
];

/** `[flag violence]` flags a category by name. */
const FLAG = /\[flag ([a-z_/-]{1,40})\]/g;

export function createSandboxModerationProvider({ timeouts }: { readonly timeouts: UpstreamTimeouts }): ModerationProvider {
  return { moderate: (call) => moderate(timeouts, call) };
}

async function moderate(timeouts: UpstreamTimeouts, call: ModerationCall): Promise<ModerationAnswer> {
  const texts = call.inputs.map(textOf);
  // Content parts are one message, texts are one message each (OpenAI's format).
  const isOneMessage = call.inputs.some((input) => typeof input !== "string");
  const messages = isOneMessage ? [texts.filter((text) => text !== null).join("\n")] : texts.map((text) => text ?? "");
  const directives = await begin(messages[0] ?? "", "input", call.signal, timeouts);
  const results: ModerationResult[] = [];
  for (const message of messages) results.push(await judge(message, call.signal));
  const tokens = countTexts(texts.filter((text) => text !== null));
  const hasPictures = texts.includes(null);
  return {
    results,
    usage: reportTokens(directives, { inputText: tokens }),
    warnings: hasPictures ? ["The sandbox judges texts only: pictures were not looked at."] : [],
  };
}

function textOf(input: ModerationInput): string | null {
  if (typeof input === "string") return input;
  return typeof input.text === "string" ? input.text : null;
}

async function judge(text: string, signal: AbortSignal): Promise<ModerationResult> {
  const innocence = new Map<Category, number>();
  const find = (category: Category, score: number) => innocence.set(category, (innocence.get(category) ?? 1) * (1 - score));
  for (const [, name = ""] of text.matchAll(FLAG)) find(toCategory(name), SCORE_MAX);
  const reading = text.replace(FLAG, " ").replaceAll("’", "'");
  for (let from = 0; from < reading.length || from === 0; from += PART_CHARS) {
    const part = reading.slice(from, from + PART_CHARS + OVERLAP_CHARS);
    for (const [category, words, score] of RULES) {
      // A finding in the overlap belongs to the next part.
      for (const match of part.matchAll(words)) if (match.index < PART_CHARS) find(category, score);
    }
    if (reading.length > PART_CHARS) await nextTurn();
    signal.throwIfAborted();
  }
  const scores = Object.fromEntries(MODERATION_CATEGORIES.map((category) => [category, toScore(innocence.get(category))]));
  const categories = Object.fromEntries(MODERATION_CATEGORIES.map((category) => [category, (scores[category] ?? 0) >= FLAGGED_FROM]));
  return {
    flagged: Object.values(categories).includes(true),
    categories,
    scores,
    appliedInputTypes: Object.fromEntries(MODERATION_CATEGORIES.map((category) => [category, ["text"]])),
  };
}

function toScore(innocence = 1): number {
  return innocence === 1 ? SCORE_NONE : Math.round(Math.min(SCORE_MAX, 1 - innocence) * 10_000) / 10_000;
}

function toCategory(name: string): Category {
  const category = MODERATION_CATEGORIES.find((known) => known === name);
  if (!category) throw refuse(`There is no category ${name}: use one of ${MODERATION_CATEGORIES.join(", ")}.`, "input");
  return category;
}
