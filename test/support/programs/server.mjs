/**
 * The built server as `npm start` runs it, but out of the project's folder: a developer's `.env` there must not reach a test. It works in
 * its data directory, which stays: threads that start later ask for the working directory, too.
 */
process.chdir(process.env.DATA_DIR ?? "");
await import("../../../dist/main.js");
