/** The schema, by graphql-eslint's strict rules; what is switched off says why. Everything else is Biome's. */
import graphql from "@graphql-eslint/eslint-plugin";

const { rules: strict } = graphql.configs["flat/schema-all"];
const { rules: relay } = graphql.configs["flat/schema-relay"];

export default [
  {
    files: ["schema/schema.graphql"],
    languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: "schema/schema.graphql" } } },
    plugins: { "@graphql-eslint": graphql },
    rules: {
      ...strict,
      ...relay,
      "@graphql-eslint/require-description": [
        "error",
        { types: true, DirectiveDefinition: true, FieldDefinition: true, InputValueDefinition: true, EnumValueDefinition: true },
      ],
      // Connections carry `nodes` beside their edges, and lists of values are plain lists.
      "@graphql-eslint/relay-edge-types": [
        "error",
        { withEdgeSuffix: true, shouldImplementNode: true, listTypeCanWrapOnlyEdgeType: false },
      ],

      // The order of fields says what belongs together and what matters most; the alphabet says neither.
      "@graphql-eslint/alphabetize": "off",
      // Forbids mutations and subscriptions as such: this is a schema that has both.
      "@graphql-eslint/no-root-type": "off",
      // What is a thing is a Node and has an id; a balance, a price or a payload is a value, and an invented id would fill caches with it.
      "@graphql-eslint/strict-id-in-types": "off",
      // A payload holds the object that changed, with all of its edges; a whole query behind a mutation would be charged work without a bound.
      "@graphql-eslint/require-field-of-type-query-in-mutation-result": "off",
      // GraphQL's own @deprecated takes a reason and no date. The reason says what to use instead, and what is deprecated stays for one release.
      "@graphql-eslint/require-deprecation-date": "off",
    },
  },
];
