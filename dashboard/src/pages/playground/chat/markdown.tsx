/** Renders Markdown of models, which is untrusted: no raw HTML, no remote images, links without a referrer. */
import { Box, Button } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTable } from "micromark-extension-gfm-table";
import { type ReactNode, useRef } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";

const heading = ({ children }: { readonly children?: ReactNode }) => <h3>{children}</h3>;
const smallHeading = ({ children }: { readonly children?: ReactNode }) => <h4>{children}</h4>;

const ExternalLink = ({ href, children }: { readonly href?: string | undefined; readonly children?: ReactNode }) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
    {children}
  </a>
);

const COMPONENTS: Components = {
  a: ({ href, children }) => <ExternalLink href={href}>{children}</ExternalLink>,
  img: ({ src, alt }) => <ExternalLink href={typeof src === "string" ? src : undefined}>Image: {alt || "no description"}</ExternalLink>,
  // The page has headings of levels 1 and 2.
  h1: heading,
  h2: heading,
  h3: smallHeading,
  h4: smallHeading,
  h5: smallHeading,
  h6: smallHeading,
  pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
  // Focusable, so that a keyboard can scroll it.
  table: ({ children }) => (
    <Box className="table" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </Box>
  ),
};

function CodeBlock({ children }: { readonly children?: ReactNode }) {
  const code = useRef<HTMLPreElement>(null);
  return (
    <div className="code-block">
      <Box component="pre" ref={code} tabIndex={0}>
        {children}
      </Box>
      <CopyCode read={() => code.current?.textContent ?? ""} />
    </div>
  );
}

/** Reads the code when it is copied, because the block may still grow. */
function CopyCode({ read }: { readonly read: () => string }) {
  const { copied, copy } = useClipboard();
  return (
    <Button size="compact-xs" variant="default" onClick={() => copy(read())}>
      {copied ? "Copied" : "Copy"}
    </Button>
  );
}

/** Of GitHub's Markdown only tables: its links without brackets are found with patterns whose time is not linear. */
const tables: NonNullable<Options["remarkPlugins"]>[number] = function (this: unknown) {
  const data = (this as { data(): { micromarkExtensions?: unknown[]; fromMarkdownExtensions?: unknown[] } }).data();
  data.micromarkExtensions = [...(data.micromarkExtensions ?? []), gfmTable()];
  data.fromMarkdownExtensions = [...(data.fromMarkdownExtensions ?? []), gfmTableFromMarkdown()];
};
const PLUGINS = [tables];

export default function Markdown({ text }: { readonly text: string }) {
  return (
    <ReactMarkdown components={COMPONENTS} remarkPlugins={PLUGINS}>
      {text}
    </ReactMarkdown>
  );
}
