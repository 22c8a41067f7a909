/**
 * Introspection without the executor. The schema is the same for every request and has no promises, so a selection is copied from it,
 * many times faster than executing it. The size of the copy is counted on the way, as its cost.
 */
import {
  type FieldNode,
  type GraphQLField,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getArgumentValues,
  getDirectiveValues,
  getNamedType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from "graphql";
import { ownValue } from "../lib/own-values.js";
import type { Fragments } from "./documents/fragments.js";
import { GRAPHQL_COST_MAX, GRAPHQL_INTROSPECTION_CHARS_PER_COST } from "./limits.js";
import type { Values } from "./variables.js";

type Field = GraphQLField<unknown, unknown>;

const ROOT_FIELDS: ReadonlyMap<string, Field> = new Map([SchemaMetaFieldDef, TypeMetaFieldDef].map((field) => [field.name, field]));

export interface Introspection {
  /** Results by the names of their root fields. Null when they cost more than any operation may. */
  readonly data: Values | null;
  readonly cost: number;
  /** All root fields by name, in the operation's order. */
  readonly fields: ReadonlyMap<string, readonly FieldNode[]>;
}

/** Whether the operation has introspection fields, including those that directives skip. */
export function asksForSchema({ operation, selectionSet }: OperationDefinitionNode, fragments: Fragments): boolean {
  if (operation !== OperationTypeNode.QUERY) return false;
  const entered = new Set<string>();
  const readsSchema = ({ selections }: SelectionSetNode): boolean =>
    selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return isIntrospection(selection);
      if (selection.kind === Kind.INLINE_FRAGMENT) return readsSchema(selection.selectionSet);
      if (entered.has(selection.name.value)) return false;
      entered.add(selection.name.value);
      const fragment = fragments.get(selection.name.value);
      return fragment !== undefined && readsSchema(fragment.selectionSet);
    });
  return readsSchema(selectionSet);
}

/** Answers introspection in a valid document, with coerced variables. */
export function introspect(schema: GraphQLSchema, operation: OperationDefinitionNode, fragments: Fragments, values: Values): Introspection {
  const collector = new Collector(fragments, values);
  const fields = collector.fields([operation.selectionSet]);
  const copying = new Copying(schema, collector);
  const data = copying.copyRoot(fields);
  return { data, cost: Math.ceil(copying.chars / GRAPHQL_INTROSPECTION_CHARS_PER_COST), fields };
}

export function isIntrospection(field: FieldNode | undefined): boolean {
  return field !== undefined && ROOT_FIELDS.has(field.name.value);
}

/** Collects fields by response name, as an executor does. */
class Collector {
  constructor(
    private readonly fragments: Fragments,
    readonly values: Values,
  ) {}

  fields(selectionSets: readonly SelectionSetNode[]): ReadonlyMap<string, FieldNode[]> {
    const found = new Map<string, FieldNode[]>();
    const entered = new Set<string>();
    const enter = (selectionSet: SelectionSetNode) => {
      for (const selection of selectionSet.selections) {
        if (!this.#isIncluded(selection)) continue;
        if (selection.kind === Kind.FIELD) {
          const name = (selection.alias ?? selection.name).value;
          const nodes = found.get(name);
          if (nodes) nodes.push(selection);
          else found.set(name, [selection]);
        } else if (selection.kind === Kind.INLINE_FRAGMENT) {
          enter(selection.selectionSet);
        } else if (!entered.has(selection.name.value)) {
          entered.add(selection.name.value);
          const fragment = this.fragments.get(selection.name.value);
          if (fragment) enter(fragment.selectionSet);
        }
      }
    };
    // No introspection type is abstract: validation has ensured that a fragment within it is of its own type.
    for (const selectionSet of selectionSets) enter(selectionSet);
    return found;
  }

  #isIncluded(selection: SelectionNode): boolean {
    if (!selection.directives || selection.directives.length === 0) return true;
    if (getDirectiveValues(GraphQLSkipDirective, selection, this.values)?.if === true) return false;
    return getDirectiveValues(GraphQLIncludeDirective, selection, this.values)?.if !== false;
  }
}

/**
 * An object of the schema as introspection shows it: its fields by key, each read once. The schema's own resolvers would determine
 * the kind of their type for every field.
 */
interface Mirror {
  readonly source: unknown;
  readonly fields: Map<string, Mirrored>;
}
type Mirrored = string | number | boolean | null | readonly Mirrored[] | Mirror;

const MIRRORS = new WeakMap<object, Mirror>();

function mirrorOf(source: object): Mirror {
  const known = MIRRORS.get(source);
  if (known) return known;
  const made: Mirror = { source, fields: new Map() };
  MIRRORS.set(source, made);
  return made;
}

interface Step {
  readonly name: string;
  /** Selections of the same field with the same arguments. */
  readonly key: string;
  readonly resolve: (source: unknown) => unknown;
  /** Null for a text, a number or a list of these. */
  readonly inside: readonly Step[] | null;
}

/** Thrown when more has been copied than any operation may cost. */
const TOO_MUCH = Symbol("too much introspection");
const CHARS_MAX = GRAPHQL_COST_MAX * GRAPHQL_INTROSPECTION_CHARS_PER_COST;
/** Characters counted per value besides its name and text: quotes, a comma, brackets, and the work of reading it. */
const CHARS_PER_VALUE = 16;

class Copying {
  /** An estimate of the characters in the answer. */
  chars = 0;
  readonly #info: GraphQLResolveInfo;

  constructor(
    schema: GraphQLSchema,
    private readonly collector: Collector,
  ) {
    // The resolvers of introspection read nothing else of it.
    this.#info = { schema } as GraphQLResolveInfo;
  }

  copyRoot(fields: ReadonlyMap<string, readonly FieldNode[]>): Values | null {
    const data: [string, unknown][] = [];
    try {
      for (const [name, nodes] of fields) {
        const field = ROOT_FIELDS.get(nodes[0]?.name.value ?? "");
        if (!field) continue;
        const step = this.#toStep(name, field, nodes);
        data.push([name, this.#copyValue(step, mirrored(step.resolve(null)))]);
      }
    } catch (error) {
      if (error === TOO_MUCH) return null;
      throw error;
    }
    return Object.fromEntries(data);
  }

  #toStep(name: string, field: Field, nodes: readonly FieldNode[]): Step {
    const args = getArgumentValues(field, nodes[0] as FieldNode, this.collector.values);
    const type = getNamedType(field.type);
    return {
      name,
      key: field.name + (args.includeDeprecated === true ? " with deprecated ones" : ""),
      resolve: (source) => field.resolve?.(source, args, null, this.#info),
      inside: isObjectType(type) ? this.#toSteps(type, nodes) : null,
    };
  }

  #toSteps(type: GraphQLObjectType, nodes: readonly FieldNode[]): Step[] {
    const fields = type.getFields();
    const selected = this.collector.fields(nodes.flatMap(({ selectionSet }) => (selectionSet ? [selectionSet] : [])));
    return [...selected].map(([name, found]) => {
      const field = ownValue(fields, found[0]?.name.value ?? "");
      return field ? this.#toStep(name, field, found) : { name, key: "__typename", resolve: () => type.name, inside: null };
    });
  }

  #copyValue({ name, inside }: Step, value: Mirrored): unknown {
    this.chars += CHARS_PER_VALUE + name.length;
    if (this.chars > CHARS_MAX) throw TOO_MUCH;
    if (value === null) return null;
    if (inside === null) {
      if (typeof value === "string") this.chars += value.length;
      else if (Array.isArray(value)) this.chars += value.length * CHARS_PER_VALUE;
      return value;
    }
    return Array.isArray(value) ? value.map((item: Mirror) => this.#copy(inside, item)) : this.#copy(inside, value as Mirror);
  }

  #copy(steps: readonly Step[], { source, fields }: Mirror): unknown {
    return Object.fromEntries(
      steps.map((step) => {
        let value = fields.get(step.key);
        if (value === undefined) {
          value = mirrored(step.resolve(source));
          fields.set(step.key, value);
        }
        return [step.name, this.#copyValue(step, value)];
      }),
    );
  }
}

function mirrored(value: unknown): Mirrored {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(mirrored);
  return typeof value === "object" ? mirrorOf(value) : (value as Mirrored);
}
