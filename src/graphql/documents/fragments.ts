import { type DocumentNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from "graphql";

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  return fragments;
}

/**
 * The fields of an operation's selection, including fragments. A fragment counts once however often it is spread, because its fields
 * are answered once.
 */
export function rootFieldNames(
  { selections }: SelectionSetNode,
  fragmentOf: (name: string) => FragmentDefinitionNode | null | undefined,
  entered = new Set<string>(),
): string[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection.name.value];
    if (selection.kind === Kind.INLINE_FRAGMENT) return rootFieldNames(selection.selectionSet, fragmentOf, entered);
    const name = selection.name.value;
    if (entered.has(name)) return [];
    entered.add(name);
    const fragment = fragmentOf(name);
    return fragment ? rootFieldNames(fragment.selectionSet, fragmentOf, entered) : [];
  });
}
