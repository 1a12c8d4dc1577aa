/** The version of Redis whose commands and replies these are. Libraries choose what they send by it. */
export const REDIS_VERSION = '7.0.15';
