/**
 * Fields with one response name must be the same field with the same arguments (GraphQL, 5.3.2 Field Selection Merging). The rule of
 * graphql-js compares every pair of them; here each is compared with the first of its name, level by level as the executor merges
 * them. The document has passed every other rule and the limit of its expanded fields.
 */
import {
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  Kind,
  print,
  type SelectionSetNode,
  type ValueNode,
} from "graphql";
import { ownValue } from "../../lib/own-values.js";
import { GRAPHQL_ERRORS_MAX, GRAPHQL_MERGED_FIELDS_MAX } from "../limits.js";

interface Selected {
  readonly node: FieldNode;
  readonly parent: GraphQLNamedType | undefined;
  readonly type: GraphQLOutputType | undefined;
  /** The type that the field is selected of; null for a root field. */
  readonly above: Selected | null;
}

interface Selections {
  readonly selectionSet: SelectionSetNode;
  readonly type: GraphQLNamedType | undefined;
  readonly above: Selected | null;
}

/** The reason why two fields of one name cannot be merged; null when they can. */
type Compare = (one: Selected, other: Selected) => string | null;

/** At most as many conflicts as are shown. */
export function mergingErrors(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  const merging = new Merging(schema, document);
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    merging.check({ selectionSet: definition.selectionSet, type: schema.getRootType(definition.operation) ?? undefined, above: null });
  }
  return merging.isTooMuch ? [tooManyMerged()] : merging.errors;
}

class Merging {
  readonly errors: GraphQLError[] = [];
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #argumentsOf = new WeakMap<readonly ArgumentNode[], number>();
  /** Texts of arguments by number, so that two long ones are compared once, however often they meet. */
  readonly #numbers = new Map<string, number>();
  #selected = 0;

  constructor(
    private readonly schema: GraphQLSchema,
    { definitions }: DocumentNode,
  ) {
    for (const definition of definitions)
      if (definition.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(definition.name.value, definition);
  }

  get isTooMuch(): boolean {
    return this.#selected > GRAPHQL_MERGED_FIELDS_MAX;
  }

  check(root: Selections): void {
    this.#compareLevel([root], (fields) => byParent(fields), this.#callDifference);
    // Two fields of one name have been reported; a second report of their types would add nothing.
    if (this.errors.length === 0) this.#compareLevel([root], (fields) => [fields], this.#shapeDifference);
  }

  /**
   * All fields with one response path, and everything below. `split`: which fields of one name are compared, and merged, with each
   * other.
   */
  #compareLevel(merged: readonly Selections[], split: (fields: Selected[]) => readonly Selected[][], difference: Compare): void {
    for (const fields of this.#collect(merged).values()) {
      for (const group of split(fields)) {
        if (this.isTooMuch || this.errors.length >= GRAPHQL_ERRORS_MAX) return;
        if (this.#findConflict(group, difference)) continue;
        const below = group.flatMap((field) => selectionsOf(field));
        if (below.length > 0) this.#compareLevel(below, split, difference);
      }
    }
  }

  #findConflict(fields: readonly Selected[], difference: Compare): boolean {
    const [first, ...others] = fields;
    for (const other of others) {
      const reason = first ? difference(first, other) : null;
      if (first && reason !== null) {
        this.errors.push(toConflict(first, other, reason));
        return true;
      }
    }
    return false;
  }

  /**
   * Groups the fields by response name. Each fragment is entered once, because its fields are the same wherever it is spread. Fields
   * of an interface beside those of several types are collected again for each type. No limit of the document covers this, so they
   * are counted.
   */
  #collect(merged: readonly Selections[]): ReadonlyMap<string, Selected[]> {
    const found = new Map<string, Selected[]>();
    const entered = new Set<string>();
    const enter = ({ selectionSet, type, above }: Selections) => {
      for (const selection of selectionSet.selections) {
        if (selection.kind === Kind.FIELD) {
          this.#selected += 1;
          const name = nameOf(selection);
          const fields = found.get(name) ?? [];
          fields.push({ node: selection, parent: type, type: typeOf(type, selection.name.value), above });
          found.set(name, fields);
          continue;
        }
        if (selection.kind === Kind.FRAGMENT_SPREAD && entered.has(selection.name.value)) continue;
        const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : this.#fragments.get(selection.name.value);
        if (selection.kind === Kind.FRAGMENT_SPREAD) entered.add(selection.name.value);
        if (!fragment) continue;
        const { typeCondition } = fragment;
        enter({ selectionSet: fragment.selectionSet, type: typeCondition ? this.schema.getType(typeCondition.name.value) : type, above });
      }
    };
    for (const selections of merged) enter(selections);
    return found;
  }

  readonly #callDifference: Compare = (one, other) => {
    const names = [one.node.name.value, other.node.name.value];
    if (names[0] !== names[1]) return `"${names[0]}" and "${names[1]}" are different fields`;
    return this.#numberOf(one.node.arguments) === this.#numberOf(other.node.arguments) ? null : "they have differing arguments";
  };

  readonly #shapeDifference: Compare = (one, other) => {
    if (this.#numberOfStream(one.node) !== this.#numberOfStream(other.node)) return "they have differing stream directives";
    if (!one.type || !other.type || shapeOf(one.type) === shapeOf(other.type)) return null;
    return `they return conflicting types "${one.type}" and "${other.type}"`;
  };

  #numberOfStream({ directives = [] }: FieldNode): number | null {
    const stream = directives.find(({ name }) => name.value === "stream");
    return stream ? this.#numberOf(stream.arguments) : null;
  }

  /** Returns the same number for the same arguments, in any order. */
  #numberOf(list: readonly ArgumentNode[] = []): number {
    if (list.length === 0) return -1;
    const known = this.#argumentsOf.get(list);
    if (known !== undefined) return known;
    const text = textOfFields(list);
    const number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    this.#argumentsOf.set(list, number);
    return number;
  }
}

function nameOf({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}

function typeOf(parent: GraphQLNamedType | undefined, name: string): GraphQLOutputType | undefined {
  return isObjectType(parent) || isInterfaceType(parent) ? ownValue(parent.getFields(), name)?.type : undefined;
}

function selectionsOf(field: Selected): Selections[] {
  const { selectionSet } = field.node;
  return selectionSet ? [{ selectionSet, type: field.type && getNamedType(field.type), above: field }] : [];
}

/** Fields of two object types never answer together; those of any other types may answer with either. */
function byParent(fields: Selected[]): readonly Selected[][] {
  if (fields.length === 1) return [fields];
  const shared: Selected[] = [];
  const own = new Map<GraphQLNamedType, Selected[]>();
  for (const field of fields) {
    if (!isObjectType(field.parent)) {
      shared.push(field);
      continue;
    }
    const group = own.get(field.parent);
    if (group) group.push(field);
    else own.set(field.parent, [field]);
  }
  return own.size === 0 ? [shared] : [...own.values()].map((group) => [...shared, ...group]);
}

/** Objects of any type are alike: their fields are compared instead. */
function shapeOf(type: GraphQLOutputType): string {
  const named = getNamedType(type);
  return isLeafType(named) ? String(type) : String(type).replace(named.name, "{}");
}

function textOfFields(fields: readonly { readonly name: { readonly value: string }; readonly value: ValueNode }[]): string {
  const byName = [...fields].sort((one, other) => (one.name.value < other.name.value ? -1 : 1));
  return `{${byName.map(({ name, value }) => `${name.value}:${textOfValue(value)}`).join(",")}}`;
}

function textOfValue(value: ValueNode): string {
  if (value.kind === Kind.OBJECT) return textOfFields(value.fields);
  if (value.kind === Kind.LIST) return `[${value.values.map(textOfValue).join(",")}]`;
  return print(value);
}

function toConflict(one: Selected, other: Selected, difference: string): GraphQLError {
  let reason = difference;
  const ones = [one.node];
  const others = [other.node];
  let [first, second] = [one, other];
  while (first.above && second.above && first.above !== second.above) {
    reason = `subfields "${nameOf(first.node)}" conflict because ${reason}`;
    [first, second] = [first.above, second.above];
    ones.unshift(first.node);
    others.unshift(second.node);
  }
  return new GraphQLError(
    `Fields "${nameOf(first.node)}" conflict because ${reason}. Use different aliases on the fields to fetch both if this was intentional.`,
    { nodes: [...ones, ...others] },
  );
}

function tooManyMerged(): GraphQLError {
  return new GraphQLError(
    `Fields of the document are merged in more than ${GRAPHQL_MERGED_FIELDS_MAX} places: select fewer fields of interfaces beside those of their types.`,
  );
}
