/** What the bundler turns into text, and the style sheets that it takes along. */
declare module "*.graphql" {
  const text: string;
  export default text;
}
declare module "*.css";
