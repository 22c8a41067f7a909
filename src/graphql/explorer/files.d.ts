/** Files that the bundler imports as text, and style sheets. */
declare module "*.graphql" {
  const text: string;
  export default text;
}
declare module "*.css";
