/** Text of an answer. Complete blocks render once, only the growing end renders again. */
import { memo, Suspense } from "react";
import { lazyWithRetry } from "../../../ui/lazy-with-retry.js";
import { blocksOf } from "./blocks.js";

const Markdown = lazyWithRetry(() => import("./markdown.js"), AsWritten);

function AsWritten({ text }: { readonly text: string }) {
  return <div className="plain">{text}</div>;
}

/** Longer ends are shown as plain text until they are complete: parsing them again for every piece would be slow. */
const TAIL_PARSED_MAX = 4_000;

const Block = memo(function Block({ text }: { readonly text: string }) {
  return (
    <Suspense fallback={<AsWritten text={text} />}>
      <Markdown text={text} />
    </Suspense>
  );
});

export function GrowingAnswer({ blocks, tail }: { readonly blocks: readonly string[]; readonly tail: string }) {
  return (
    <div className="prose">
      {blocks.map((text, index) => (
        <div key={index}>
          <Block text={text} />
        </div>
      ))}
      {tail !== "" && (
        <div key={blocks.length}>
          <Tail text={tail} />
        </div>
      )}
    </div>
  );
}

function Tail({ text }: { readonly text: string }) {
  const [, code] = /^ {0,3}(?:`{3,}|~{3,})[^\n]*\n([\s\S]*)$/.exec(text) ?? [];
  if (code !== undefined && !/\n {0,3}(?:`{3,}|~{3,})\s*$/.test(text)) return <pre>{code}</pre>;
  return text.length > TAIL_PARSED_MAX ? <AsWritten text={text} /> : <Block text={text} />;
}

export const AnswerText = memo(function AnswerText({ text }: { readonly text: string }) {
  const blocks = blocksOf(text);
  return <GrowingAnswer blocks={blocks} tail="" />;
});
