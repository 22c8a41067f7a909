/** Previews of images, videos and audio. Other files get an icon. */
import { DocumentIcon, DocumentTextIcon, FilmIcon, MusicalNoteIcon } from "@heroicons/react/24/outline";
import { useState } from "react";
import type { MediaKind } from "../../client/generated/graphql.js";
import { Enlargeable } from "../../ui/enlargeable.js";

export interface Shown {
  readonly url: string;
  readonly kind: MediaKind;
  readonly name: string | null;
  readonly contentType: string;
}

const ICONS = { IMAGE: DocumentIcon, VIDEO: FilmIcon, AUDIO: MusicalNoteIcon, TEXT: DocumentTextIcon, OTHER: DocumentIcon } as const;

/** Preview in the list of files. Loads no audio and plays no video. */
export function Thumbnail({ file }: { readonly file: Shown }) {
  const [isBroken, setBroken] = useState(false);
  if (file.kind === "IMAGE" && !isBroken)
    return <img className="file-picture" src={file.url} alt="" loading="lazy" decoding="async" onError={() => setBroken(true)} />;
  if (file.kind === "VIDEO" && !isBroken)
    return (
      <video className="file-picture" src={`${file.url}#t=0.1`} preload="metadata" muted playsInline onError={() => setBroken(true)} />
    );
  const Icon = ICONS[file.kind];
  return (
    <span className="file-sign">
      <Icon width={40} aria-hidden />
      <span className="mono">{file.contentType}</span>
    </span>
  );
}

/** Preview on the page of a file. */
export function Preview({ file }: { readonly file: Shown }) {
  const [isBroken, setBroken] = useState(false);
  const name = file.name ?? "the file";
  if (isBroken) return <Thumbnail file={{ ...file, kind: "OTHER" }} />;
  if (file.kind === "IMAGE")
    return (
      <Enlargeable url={file.url} name={name}>
        <img className="file-whole" src={file.url} alt={name} onError={() => setBroken(true)} />
      </Enlargeable>
    );
  if (file.kind === "VIDEO") {
    return (
      // Uploaded files have no captions. The empty track satisfies the accessibility check.
      <video className="file-whole" src={file.url} controls preload="metadata" aria-label={name} onError={() => setBroken(true)}>
        <track kind="captions" />
      </video>
    );
  }
  if (file.kind === "AUDIO") {
    return (
      <audio src={file.url} controls preload="metadata" aria-label={name} style={{ width: "100%" }} onError={() => setBroken(true)}>
        <track kind="captions" />
      </audio>
    );
  }
  return <Thumbnail file={file} />;
}
