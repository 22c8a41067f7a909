/**
 * The size of a document when every fragment is counted as often as it is spread. One walk, in which each fragment is entered once,
 * computes it before any validation rule runs, so that rules never exceed these limits.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from "graphql";
import { GRAPHQL_ALIASES_MAX, GRAPHQL_COST_MAX, GRAPHQL_DEPTH_MAX, GRAPHQL_DIRECTIVES_MAX } from "../limits.js";

interface Size {
  readonly depth: number;
  readonly aliases: number;
  readonly directives: number;
  readonly fields: number;
}

const NOTHING: Size = { depth: 0, aliases: 0, directives: 0, fields: 0 };

/** Exempt from depth: the size of their results is counted (introspection.ts). */
const INTROSPECTION: ReadonlySet<string> = new Set(["__schema", "__type"]);

/** The limit that the document exceeds; null when it exceeds none. */
export function structureError(document: DocumentNode): GraphQLError | null {
  const sizes = new Sizes(document);
  let fields = 0;
  for (const operation of sizes.operations) {
    const size = sizes.ofOperation(operation);
    if (size.depth > GRAPHQL_DEPTH_MAX) return exceeded(`Query depth limit of ${GRAPHQL_DEPTH_MAX}`, size.depth, operation);
    if (size.aliases > GRAPHQL_ALIASES_MAX) return exceeded(`Aliases limit of ${GRAPHQL_ALIASES_MAX}`, size.aliases, operation);
    if (size.directives > GRAPHQL_DIRECTIVES_MAX)
      return exceeded(`Directives limit of ${GRAPHQL_DIRECTIVES_MAX}`, size.directives, operation);
    fields += size.fields;
  }
  if (fields <= GRAPHQL_COST_MAX) return null;
  // Each field costs at least 1, at any place.
  return new GraphQLError(
    `The document costs more than ${GRAPHQL_COST_MAX}, which is the most that is allowed: ask for fewer fields, or spread fragments less often.`,
  );
}

function exceeded(limit: string, found: number, operation: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`${limit} exceeded, found ${found}.`, { nodes: operation });
}

class Sizes {
  readonly operations: OperationDefinitionNode[] = [];
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #known = new Map<string, Size>();

  constructor({ definitions }: DocumentNode) {
    for (const definition of definitions) {
      if (definition.kind === Kind.OPERATION_DEFINITION) this.operations.push(definition);
      else if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(definition.name.value, definition);
    }
  }

  ofOperation({ directives = [], variableDefinitions = [], selectionSet }: OperationDefinitionNode): Size {
    const size = this.#ofSelections(selectionSet);
    const onVariables = variableDefinitions.reduce((count, { directives: own = [] }) => count + own.length, 0);
    return { ...size, directives: size.directives + directives.length + onVariables };
  }

  #ofSelections({ selections }: SelectionSetNode): Size {
    let { depth, aliases, directives, fields } = NOTHING;
    for (const selection of selections) {
      const size = this.#ofSelection(selection);
      depth = Math.max(depth, size.depth);
      aliases += size.aliases;
      directives += size.directives + (selection.directives?.length ?? 0);
      fields += size.fields;
    }
    return { depth, aliases, directives, fields };
  }

  #ofSelection(selection: SelectionNode): Size {
    if (selection.kind === Kind.FIELD) return this.#ofField(selection);
    const size =
      selection.kind === Kind.INLINE_FRAGMENT ? this.#ofSelections(selection.selectionSet) : this.#ofFragment(selection.name.value);
    return { ...size, depth: size.depth + 1 };
  }

  #ofField({ name: { value: name }, alias, selectionSet }: FieldNode): Size {
    const inside = selectionSet ? this.#ofSelections(selectionSet) : NOTHING;
    return {
      depth: INTROSPECTION.has(name) ? 0 : inside.depth + 1,
      aliases: inside.aliases + (alias && name !== "__typename" ? 1 : 0),
      directives: inside.directives,
      fields: inside.fields + 1,
    };
  }

  /** A fragment within itself counts as nothing, because a validation rule refuses it. */
  #ofFragment(name: string): Size {
    const known = this.#known.get(name);
    if (known) return known;
    const fragment = this.#fragments.get(name);
    if (!fragment) return NOTHING;
    this.#known.set(name, NOTHING);
    const inside = this.#ofSelections(fragment.selectionSet);
    // A spread and its definition are a level each.
    const size = { ...inside, depth: inside.depth + 1, directives: inside.directives + (fragment.directives?.length ?? 0) };
    this.#known.set(name, size);
    return size;
  }
}
