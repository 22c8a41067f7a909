/** The files of one commit, by path. */
import type { GitObject } from "./git-pack.js";
import { RepositoryError } from "./repository-error.js";

export type FoundFile =
  | { readonly kind: "file"; readonly bytes: Buffer }
  /** The file exists, and was not fetched because it is larger than an agent may import. */
  | { readonly kind: "large" }
  | { readonly kind: "folder" }
  | { readonly kind: "link" }
  | { readonly kind: "submodule" };

interface TreeEntry {
  readonly mode: string;
  readonly id: string;
}

const ID_BYTES = 20;
const TREE_LINE = /^tree ([0-9a-f]{40})\n/;
/** Git's modes: files, executable or not; old versions write the third. */
const FILE_MODES = new Set(["100644", "100755", "100664"]);
const FOLDER_MODE = "40000";
const LINK_MODE = "120000";

export class GitFiles {
  private readonly folders = new Map<string, ReadonlyMap<string, TreeEntry>>();
  private readonly rootId: string;

  /** Throws a RepositoryError when the commit is not among the objects. */
  constructor(
    private readonly objects: ReadonlyMap<string, GitObject>,
    commitSha: string,
  ) {
    const commit = objects.get(commitSha);
    const [, rootId] = commit?.type === "commit" ? (TREE_LINE.exec(commit.bytes.toString("latin1", 0, 46)) ?? []) : [];
    if (rootId === undefined) throw malformed();
    this.rootId = rootId;
  }

  /** `path` has no leading slash. Null when nothing is there; links are not followed. */
  find(path: string): FoundFile | null {
    const names = path.split("/");
    let entry: TreeEntry | undefined = { mode: FOLDER_MODE, id: this.rootId };
    for (const name of names) {
      if (entry?.mode !== FOLDER_MODE) return null;
      entry = this.folder(entry.id).get(name);
    }
    if (entry === undefined) return null;
    if (entry.mode === FOLDER_MODE) return { kind: "folder" };
    if (entry.mode === LINK_MODE) return { kind: "link" };
    if (!FILE_MODES.has(entry.mode)) return { kind: "submodule" };
    const blob = this.objects.get(entry.id);
    return blob?.type === "blob" ? { kind: "file", bytes: blob.bytes } : { kind: "large" };
  }

  private folder(id: string): ReadonlyMap<string, TreeEntry> {
    const known = this.folders.get(id);
    if (known !== undefined) return known;
    const tree = this.objects.get(id);
    if (tree?.type !== "tree") throw malformed();
    const entries = readTree(tree.bytes);
    this.folders.set(id, entries);
    return entries;
  }
}

/** Each entry is `<mode> <name>`, a NUL, and the bytes of an id. */
function readTree(bytes: Buffer): ReadonlyMap<string, TreeEntry> {
  const entries = new Map<string, TreeEntry>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const end = bytes.indexOf(0, at);
    if (space === -1 || end < space || end + 1 + ID_BYTES > bytes.length) throw malformed();
    const id = bytes.toString("hex", end + 1, end + 1 + ID_BYTES);
    entries.set(bytes.toString("utf8", space + 1, end), { mode: bytes.toString("latin1", at, space), id });
    at = end + 1 + ID_BYTES;
  }
  return entries;
}

function malformed(): RepositoryError {
  return new RepositoryError("host", "The repository's host sends a commit that is not whole.");
}
