/**
 * `secrets`: credentials and keys (docs/spec/safety.md): secretlint's recommended rules, shapes of further vendors' keys, credentials
 * announced by their context, and Sluice's own keys, found by checksum.
 *
 * Runs the rules without secretlint's engine, which lets comments in a text switch rules off, and compares every finding with every other.
 */
import { rules } from "@secretlint/secretlint-rule-preset-recommend";
import type { SecretLintRuleContext, SecretLintRuleCreator, SecretLintSourceCode } from "@secretlint/types";
import { isWellFormedApiKey } from "../../lib/api-key-format.js";
import { withoutTrailing } from "../../lib/urls.js";
import { type Finding, MARKS } from "./redaction.js";

/** It obeys comments in the text. */
const COMMENT_RULE = "@secretlint/secretlint-rule-filter-comments";
const RULES = (rules as readonly SecretLintRuleCreator[]).filter(({ meta }) => meta.id !== COMMENT_RULE);
/** Ids of AWS keys are half of the credential. */
const RULE_OPTIONS = { enableIDScanRule: true };

export function findSecrets(text: string): readonly Finding[] {
  return [...findByRules(text), ...findOwnKeys(text), ...findByShape(text), ...findPrivateKeys(text)].map((found) => ({
    ...found,
    mark: MARKS.secret,
  }));
}

type Span = Pick<Finding, "start" | "end">;

function findByRules(text: string): Span[] {
  const found: Span[] = [];
  // Without path and extension, so that rules about files do nothing.
  const source = { content: text, filePath: "", ext: "", contentType: "text" } as unknown as SecretLintSourceCode;
  for (const rule of RULES) {
    const context = {
      createTranslator: () => (_id: string, values: Readonly<Record<string, unknown>>) => ({ values: Object.values(values) }),
      report: (reported: { readonly range: readonly [number, number]; readonly message: unknown }) => {
        found.push(toSpan(text, reported.range, reported.message));
      },
      ignore: () => undefined,
      sharedOptions: {},
    } as unknown as SecretLintRuleContext;
    rule.create(context, RULE_OPTIONS).file?.(source);
  }
  return found;
}

/** Some rules report a span from the start of the announcing text, with the secret's length; this finds the secret itself. */
function toSpan(text: string, [start, end]: readonly [number, number], message: unknown): Span {
  const { values } = message as { readonly values: readonly unknown[] };
  const secret = values.find((value) => typeof value === "string" && value.length === end - start);
  const place = typeof secret === "string" ? text.indexOf(secret, start) : -1;
  const from = place === -1 ? start : place;
  // Some reach to the next space, past the closing quote.
  const quote = text.slice(from, from + (end - start)).search(/["'`<>]/);
  return { start: from, end: from + (quote > 0 ? quote : end - start) };
}

const OWN_KEY = /(?<![0-9A-Za-z])(?:sk_[0-9A-Za-z]{43}|pk_[0-9A-Za-z]{22})(?![0-9A-Za-z])/g;

function findOwnKeys(text: string): Span[] {
  return [...text.matchAll(OWN_KEY)]
    .filter(([key]) => isWellFormedApiKey(key))
    .map(({ index, 0: key }) => ({ start: index, end: index + key.length }));
}

const WORD = "(?<![0-9A-Za-z_-])";
/** Vendors' keys that the rules lack, or whose published examples they accept. */
const KEY_SHAPES = [
  /(?<![0-9A-Za-z])(?:A3T[A-Z0-9]|AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA)[A-Z0-9]{16}(?![0-9A-Za-z])/g,
  new RegExp(`${WORD}sk-(?=[0-9A-Za-z_-]{0,200}\\d)[0-9A-Za-z_-]{20,256}`, "g"),
  new RegExp(`${WORD}(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{16,256}`, "g"),
  new RegExp(`${WORD}(?:gh[pousr]_[0-9A-Za-z]{30,255}|glpat-[0-9A-Za-z_-]{20,64}|hf_[0-9A-Za-z]{30,64}|gsk_[0-9A-Za-z]{40,64})`, "g"),
  new RegExp(`${WORD}(?:xai-[0-9A-Za-z]{40,128}|r8_[0-9A-Za-z]{30,64}|pplx-[0-9A-Za-z]{40,64}|whsec_[0-9A-Za-z+/=]{20,128})`, "g"),
  new RegExp(`${WORD}(?:AIza[0-9A-Za-z_-]{35}|GOCSPX-[0-9A-Za-z_-]{20,64}|ya29\\.[0-9A-Za-z_-]{20,512})`, "g"),
  new RegExp(`${WORD}(?:pypi-[0-9A-Za-z_-]{50,256}|dop_v1_[0-9a-f]{64}|key-[0-9a-f]{32}|ag_[0-9A-Za-z._-]{20,2048})`, "g"),
  new RegExp(`${WORD}eyJ[0-9A-Za-z_-]{8,4096}\\.eyJ[0-9A-Za-z_-]{4,8192}\\.[0-9A-Za-z_-]{8,2048}`, "g"),
];

/** The group is the secret; the announcing text stays. */
const ANNOUNCED = [
  /(?<![0-9A-Za-z])bearer[ \t]{1,8}(?<secret>[0-9A-Za-z._~+/-]{16,4096}={0,2})/gi,
  /(?<![0-9A-Za-z])basic[ \t]{1,8}(?<secret>[0-9A-Za-z+/]{16,1024}={0,2})(?![0-9A-Za-z+/=])/gi,
  /(?<![0-9A-Za-z+.-])[a-z][0-9a-z+.-]{1,20}:\/\/[^\s/:@"'<>]{0,100}:(?<secret>[^\s/@"'<>]{3,200})@/gi,
  /(?<=pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|account|auth|private|encryption|signing)[_ -]?key|credentials?)["'`]?(?:\s{0,4}(?:=>|:=|[:=])|\s{1,4}is\b:?)\s{0,4}["'`]?(?<secret>(?:(?!&\w{1,30}=)[^\s"'`,;<>(){}[\]]){6,512})/gi,
];

function findByShape(text: string): Span[] {
  const found: Span[] = [];
  for (const shape of KEY_SHAPES) {
    for (const { index, 0: key } of text.matchAll(shape)) found.push({ start: index, end: index + key.length });
  }
  for (const shape of ANNOUNCED) {
    for (const { index, 0: sentence, groups } of text.matchAll(shape)) {
      const secret = groups?.secret ?? "";
      const start = index + sentence.lastIndexOf(secret);
      if (isCredential(secret)) found.push({ start, end: start + secret.length });
    }
  }
  return found;
}

/** Excludes words, variables, types and placeholders: a credential has a letter, and a digit or a sign. */
function isCredential(secret: string): boolean {
  if (/^\$|^%[A-Z_]+%$|^\*+$|^(?:process|import|os|env)\.|^https?:\/\//.test(secret)) return false;
  return /\p{L}/u.test(secret) && /[\d!#$%^&*+=?@~/\\|]/.test(withoutTrailing(secret, ".?!"));
}

const KEY_BEGIN = /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;
const KEY_END = /-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y;
const DASHES = "-----";

/** PEM blocks of any length and kind; the rules find only longer ones. */
function findPrivateKeys(text: string): Span[] {
  const found: Span[] = [];
  for (const { index, 0: begin } of text.matchAll(KEY_BEGIN)) {
    KEY_END.lastIndex = text.indexOf(DASHES, index + begin.length);
    if (KEY_END.lastIndex > 0 && KEY_END.test(text)) found.push({ start: index, end: KEY_END.lastIndex });
  }
  return found;
}
