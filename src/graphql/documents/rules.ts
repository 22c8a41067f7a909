/** Validation rules in addition to those of graphql-js: for `@defer` and `@stream`, and for fields allowed once per operation. */
import { type ASTVisitor, GraphQLError, type GraphQLObjectType, getNullableType, isListType, Kind, type ValidationContext } from "graphql";
import { ownValue } from "../../lib/own-values.js";
import { rootFieldNames } from "./fragments.js";

/** Clients identify the parts of an answer by their labels. */
export function IncrementalLabelRule(context: ValidationContext): ASTVisitor {
  const known = new Set<string>();
  return {
    Directive: (directive) => {
      const { value: name } = directive.name;
      if (name !== "defer" && name !== "stream") return;
      const label = directive.arguments?.find((argument) => argument.name.value === "label")?.value;
      if (!label || label.kind === Kind.NULL) return;
      if (label.kind !== Kind.STRING) {
        context.reportError(
          new GraphQLError(`The label of @${name} must be a text in the document, not a variable.`, { nodes: directive }),
        );
      } else if (known.has(label.value)) {
        context.reportError(new GraphQLError("Each label of @defer and @stream must be of its own in the document.", { nodes: directive }));
      } else {
        known.add(label.value);
      }
    },
  };
}

/** Fields of a mutation run one after the other, and a subscription already answers in parts. */
export function IncrementalRootRule(context: ValidationContext): ASTVisitor {
  return {
    Directive: (directive) => {
      const { value: name } = directive.name;
      if (name !== "defer" && name !== "stream") return;
      const schema = context.getSchema();
      const parent = context.getParentType();
      if (!parent || (parent !== schema.getMutationType() && parent !== schema.getSubscriptionType())) return;
      context.reportError(new GraphQLError(`@${name} cannot be used on a field of ${parent.name}.`, { nodes: directive }));
    },
  };
}

export function StreamedListRule(context: ValidationContext): ASTVisitor {
  return {
    Directive: (directive) => {
      const field = context.getFieldDef();
      if (directive.name.value !== "stream" || !field || isListType(getNullableType(field.type))) return;
      context.reportError(new GraphQLError(`@stream is for lists, which "${field.name}" is not.`, { nodes: directive }));
    },
  };
}

/** Fields marked `isOnePerOperation` may appear once among the root fields: repeating them by alias would evade rate limits. */
export function OnePerOperationRule(context: ValidationContext): ASTVisitor {
  return {
    OperationDefinition: (operation) => {
      const root = context.getSchema().getRootType(operation.operation);
      if (!root) return;
      const guarded = rootFieldNames(operation.selectionSet, (name) => context.getFragment(name)).filter((name) =>
        isOnePerOperation(root, name),
      );
      if (guarded.length > 1) {
        context.reportError(
          new GraphQLError(`An operation may hold only one of ${[...new Set(guarded)].join(", ")}.`, { nodes: operation }),
        );
      }
    },
  };
}

function isOnePerOperation(root: GraphQLObjectType, fieldName: string): boolean {
  return ownValue(root.getFields(), fieldName)?.extensions.isOnePerOperation === true;
}
