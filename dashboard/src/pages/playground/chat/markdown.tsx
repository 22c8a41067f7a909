/** Renders Markdown of models, which is untrusted: no raw HTML, no remote images, links without a referrer. */
import { Box } from "@mantine/core";
import type { ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";

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
  // Focusable, so that a keyboard can scroll it.
  pre: ({ children }) => (
    <Box component="pre" tabIndex={0}>
      {children}
    </Box>
  ),
};

/** Tables are shown as source text in a monospaced font. */
function isTable(text: string): boolean {
  const lines = text.trim().split("\n");
  return lines.length > 1 && lines.every((line) => line.trimStart().startsWith("|"));
}

export default function Markdown({ text }: { readonly text: string }) {
  if (isTable(text))
    return (
      <Box component="pre" tabIndex={0}>
        {text.trim()}
      </Box>
    );
  return <ReactMarkdown components={COMPONENTS}>{text}</ReactMarkdown>;
}
