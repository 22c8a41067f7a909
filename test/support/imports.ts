/** Who imports whom, read off the sources' text. */
import { posix } from "node:path";

/** Path from the project's root, with slashes, to the file's text. */
export type Sources = ReadonlyMap<string, string>;

/** What a node names: files by their paths, or folders of them. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const STATIC_IMPORT = /^(?:import|export)\s+(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*["']([^"']+)["']\s*\)/g;

/** Types and dynamic imports included. */
export function readImports(text: string): string[] {
  return [STATIC_IMPORT, DYNAMIC_IMPORT].flatMap((pattern) => [...text.matchAll(pattern)].map(([, target = ""]) => target));
}

export function resolveImport(file: string, target: string): string {
  return posix.join(posix.dirname(file), target).replace(/\.js(x?)$/, ".ts$1");
}

/** Of each file, those of the sources that it imports. */
export function importsOf(sources: Sources): Graph {
  return new Map(
    [...sources].map(([file, text]) => {
      const targets = readImports(text).filter((target) => target.startsWith("."));
      return [file, new Set(targets.map((target) => resolveImport(file, target)).filter((target) => sources.has(target)))];
    }),
  );
}

/** The graph of groups: what a file imports from another group, its group imports. Files of no group are left out. */
export function groupBy(graph: Graph, groupOf: (file: string) => string | null): Graph {
  const groups = new Map<string, Set<string>>();
  for (const [file, targets] of graph) {
    const group = groupOf(file);
    if (group === null) continue;
    const named = groups.get(group) ?? new Set();
    groups.set(group, named);
    for (const target of targets) {
      const other = groupOf(target);
      if (other !== null && other !== group) named.add(other);
    }
  }
  return groups;
}

/** The largest sets in which each member reaches each; a file alone that does not import itself is in none. */
export function circlesOf(graph: Graph): string[][] {
  const order = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): number => {
    const number = order.size;
    order.set(node, number);
    let low = number;
    open.push(node);
    for (const target of graph.get(node) ?? []) {
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, order.get(target) ?? number);
    }
    if (low === number) {
      const circle = open.splice(open.indexOf(node));
      if (circle.length > 1 || graph.get(node)?.has(node)) circles.push(circle.sort());
    }
    return low;
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return circles;
}
