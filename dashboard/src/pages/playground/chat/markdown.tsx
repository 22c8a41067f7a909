/** Markdown as models write it. What it holds is a stranger's: no HTML of its own, no pictures from elsewhere, links that tell nobody where from. */
import { Box } from "@mantine/core";
import type { ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";

const heading = ({ children }: { readonly children?: ReactNode }) => <h3>{children}</h3>;
const smallHeading = ({ children }: { readonly children?: ReactNode }) => <h4>{children}</h4>;

const Elsewhere = ({ href, children }: { readonly href?: string | undefined; readonly children?: ReactNode }) => (
  <a href={href} target="_blank" rel="noopener noreferrer nofollow">
    {children}
  </a>
);

const COMPONENTS: Components = {
  a: ({ href, children }) => <Elsewhere href={href}>{children}</Elsewhere>,
  img: ({ src, alt }) => <Elsewhere href={typeof src === "string" ? src : undefined}>Picture: {alt || "without words"}</Elsewhere>,
  // The page's own headings stand above these.
  h1: heading,
  h2: heading,
  h3: smallHeading,
  h4: smallHeading,
  h5: smallHeading,
  h6: smallHeading,
  // Reached by the keyboard, because it may scroll sideways.
  pre: ({ children }) => (
    <Box component="pre" tabIndex={0}>
      {children}
    </Box>
  ),
};

/** Of bars: shown as it was written, where its columns stand below each other. */
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
